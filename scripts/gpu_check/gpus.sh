# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For gpu_check.sh: which GPUs the program sees.

# visible_gpus: their UUIDs in the program's order, one a line, with CUDA_DEVICE_ORDER=PCI_BUS_ID. CUDA_VISIBLE_DEVICES
# names them by index or by the beginning of a UUID; as in CUDA, an entry that names none ends the list.
visible_gpus() {
  local all entry entries found
  all=$(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | grep '^GPU-') || return 0
  if [[ -z ${CUDA_VISIBLE_DEVICES+set} ]]; then
    echo "$all"
    return
  fi
  IFS=, read -ra entries <<<"$CUDA_VISIBLE_DEVICES"
  for entry in "${entries[@]}"; do
    if [[ $entry =~ ^[0-9]+$ ]]; then
      found=$(sed -n "$((10#$entry + 1))p" <<<"$all")
    else
      found=$(awk -v start="$entry" 'index($0, start) == 1' <<<"$all")
    fi
    (($(grep -c . <<<"$found") == 1)) || return 0
    echo "$found"
  done
}
