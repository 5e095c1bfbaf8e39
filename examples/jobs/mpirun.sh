#!/bin/bash
# Under mpirun of Open MPI or MPICH: RANKS=4 ./mpirun.sh ./app input
# Settings are said in the line: on other hosts mpirun passes on no variable that it is not told of.
set -eu

"${MPIRUN:-mpirun}" -np "${RANKS:-4}" dftrace-run -o "$PWD/traces/rank%r" -- "$@"
