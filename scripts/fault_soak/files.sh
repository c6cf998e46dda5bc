# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2054,SC2154,SC2317
# For fault_soak.sh: every file operation of a training fails, one each time (tests/support/file_faults). Two trainings: one that
# begins, and one that resumes where rank 0 was killed in its seventh step.

# The system refused a call, as docs/checkpoints.md says; a killed process.
file_fault_codes="3 137"

# observe RECORD: the launchers from here on, and their ranks.
observe() {
  environment=(LD_PRELOAD="$library" GRADRING_FILE_FAULTS_BELOW="$folder" GRADRING_FILE_FAULTS_RECORD="$1")
}

# prepare_files: the two trainings and the operations of each, $soak/operations-new and -resumed.
prepare_files() {
  attacked_steps=8
  prepare new 200
  template=$soak/resumed
  cp -a "$soak/new" "$template"
  cp "$soak/new.weights" "$soak/resumed.weights"
  cp "$soak/new.figures" "$soak/resumed.figures"
  (
    enter "$template" 0
    training() { echo "$(attacked_training) --inject kill:rank=0,step=7"; }
    launch 0
    expect 137
    expect_nothing_left
    echo mine | tee "$run/run/notes.txt" >"$run/run/checkpoints/README"
    ln -s ../../../archive "$run/run/checkpoints/step-1.partial"
    ln -s ../../../archive "$run/run/checkpoints/step-2"
    rm "$run"/*.out "$run"/*.err
  )
  local training
  for training in new resumed; do
    cp -a "$soak/$training" "$soak/recorded-$training"
    (
      enter "$soak/recorded-$training" 0
      observe "$soak/operations-$training"
      launch 0
      expect 0
    )
    [[ -s $soak/operations-$training ]] || die "$library records no file operation"
    rm -rf "$soak/recorded-$training"
  done
}

# faults_of OPERATION: what may happen there. A process that is killed after it has read something is one that is killed before
# what it does next.
faults_of() {
  case $1 in
    write | pwrite | writev) echo kill-before kill-after half EIO ENOSPC EINTR full ;;
    create | mkdir | mkdtemp | mkstemp | symlink | link) echo kill-before kill-after EIO ENOSPC EINTR full ;;
    rename | fsync | fdatasync | ftruncate | truncate | unlink) echo kill-before kill-after EIO ENOSPC EINTR ;;
    read | pread | readv) echo kill-before half EIO EINTR ;;
    *) echo kill-before EIO EINTR ;;
  esac
}

# The cases, a line each. Ranks wait for each other by opening files of the store again and again: the first times count.
file_cases() {
  local training process operation path nth fault
  for training in new resumed; do
    while read -r process operation path nth _; do
      if [[ $operation == open && $path == */store/* ]] && ((nth > 2)); then continue; fi
      for fault in $(faults_of "$operation"); do echo "file $training $process $operation $path $nth $fault"; done
    done <"$soak/operations-$training"
  done
}

# attack_file TRAINING PROCESS OPERATION PATH NTH FAULT
attack_file() {
  local training=$1
  shift
  cp -a "$soak/$training" "$folder"
  before_it=$(canaries)
  observe "$folder.hit"
  environment+=("GRADRING_FILE_FAULT=$*")
  launch 0
  environment=()
  await "$pid"
  local how=$code
  [[ -s $folder.hit ]] || how=missed
  rm -f "$folder.hit"
  expect_outcome "$training" "$file_fault_codes"
  if [[ $training == resumed ]]; then
    [[ $(cat "$run/run/notes.txt" "$run/run/checkpoints/README") == mine$'\n'mine ]] ||
      fail "files of the user in the run directory have changed"
  fi
  outcome "$5" "$how"
}

# cases_of_each: of each operation one case, drawn.
cases_of_each() { some_of all | awk '!seen[$2, $3, $4, $5, $6]++'; }

# attack_files COUNT: or "all", or "each" for every operation with one of its faults.
attack_files() {
  if [[ $1 == 0 ]]; then return; fi
  prepare_files
  file_cases | if [[ $1 == each ]]; then cases_of_each; else some_of "$1"; fi >"$soak/cases"
  attack_all files "$soak/cases" "finished, or resumed to the same weights and figures; \"messages\": of these so many were resumed"
}
