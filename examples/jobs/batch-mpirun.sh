#!/bin/bash
# A batch script for Slurm whose ranks mpirun starts: sbatch -n 4 batch-mpirun.sh ./app input
# Files are written on each node first and moved when their process has ended.
#SBATCH --job-name=traced
set -eu

"${MPIRUN:-mpirun}" -np "$SLURM_NTASKS" \
	dftrace-run --stage "${TMPDIR:-/tmp}" -o "$PWD/traces/%j/rank%r" -- "$@"
