#!/bin/bash
# A run script for Flux, with the number of ranks first:
#	flux alloc -N 1 ./flux.sh 4 ./app input
#	flux batch -N 1 flux.sh 4 ./app input
#	flux proxy JOB ./flux.sh 4 ./app input
# Everything is said here, nothing by variables: flux proxy does not pass the environment on.
set -eu

# Its full name, where it is not in the PATH of a fresh shell.
dftrace_run=dftrace-run
ranks=$1
shift

flux run -n "$ranks" "$dftrace_run" -o "$PWD/traces/%j/rank%r" -- "$@"
