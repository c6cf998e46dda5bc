#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on two ranks of which one is slowed down and then killed, and draws the report of the run.
#
# Usage: scripts/draw_report.sh [--program GRADRING] [--output FILE.png] [--html FILE.html]
#
# Trains on digits, which need no download. Writes the page to FILE.html (default build/report/report.html) and a picture of
# its upper part to FILE.png (default docs/images/report.png). Installs chromium, pngquant and optipng if they are missing.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

program=build/release/gradring
picture=docs/images/report.png
page=build/report/report.html
while (($#)); do
  case $1 in
    --program) program=$(from_here "${2:?"--program needs a path"}"); shift 2 ;;
    --output) picture=$(from_here "${2:?"--output needs a path"}"); shift 2 ;;
    --html) page=$(from_here "${2:?"--html needs a path"}"); shift 2 ;;
    --help) usage; exit ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
done
[[ -x $program ]] || die "$program does not exist; build it with scripts/test.sh or give --program"
need_packages chromium pngquant optipng

run=build/report/digits-two-ranks
rm -rf "$run"
mkdir -p "$(dirname "$page")" "$(dirname "$picture")"
faults='delay:rank=1,step=80,ms=2000;kill:rank=1,step=230'
say "Training into $run"
OMP_NUM_THREADS=1 "$program" launch --nproc-per-node 2 --max-restarts 1 train --run-dir "$run" --resume auto --dataset digits \
  --epochs 4 --batch-size 32 --precision fp16 --schedule cosine --warmup-steps 30 --eval-every 50 --save-every-steps 50 \
  --name 'digits on two ranks' --tags demo --threads 1 --device cpu --inject "$faults" --progress none
"$program" report "$run" -o "$page"

say "Drawing $picture"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=1 \
  --window-size=1280,1680 --screenshot="$picture" "file://$(realpath "$page")" 2>/dev/null
pngquant --force --speed 1 --quality 60-95 --output "$picture" "$picture"
optipng -quiet -o4 "$picture"
du -b "$page" "$picture"
