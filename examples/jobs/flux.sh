#!/bin/bash
# A run script for Flux: flux alloc -N 1 ./flux.sh ./app input (or flux batch, flux proxy JOB ./flux.sh …)
# All settings are said in the line: flux proxy does not pass the environment on.
set -eu

flux run -n "${RANKS:-4}" dftrace-run -o "$PWD/traces/%j/rank%r" -- "$@"
