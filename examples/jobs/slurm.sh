#!/bin/bash
# A batch script for Slurm: sbatch -n 4 slurm.sh ./app input
# Traces go below traces/JOB. Settings are exported, since srun passes the environment on.
#SBATCH --job-name=traced
set -eu

export DFTRACER_LOG_FILE=$PWD/traces/%j/rank%r

# Open MPI: MPI=pmix sbatch …; MPICH: MPI=pmi2 sbatch …
srun ${MPI:+--mpi="$MPI"} dftrace-run -- "$@"
