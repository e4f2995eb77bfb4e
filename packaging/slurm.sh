#!/bin/bash
# sbatch packaging/slurm.sh examples/mnist.toml: one worker on each of four nodes. Resubmitting it continues the run.
#SBATCH --job-name=artel
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=INT@60
set -euo pipefail
config=${1:?usage: sbatch packaging/slurm.sh FILE.toml}
out="runs/$(basename "$config" .toml)-${SLURM_JOB_NAME}"
resume=()
[[ -d "$out/checkpoints" ]] && resume=(--resume)
export ARTEL_TOKEN=${ARTEL_TOKEN:-$(openssl rand -hex 32)}
srun artel train "$config" --out "$out" --threads "$SLURM_CPUS_PER_TASK" "${resume[@]}"
