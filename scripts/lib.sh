# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the scripts of this folder share. Sourced, after which the working directory is the repository's root.

set -euo pipefail
script=$(realpath "$0")
started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libdnnl-dev
  zlib1g-dev libssl-dev curl libpng-dev libjpeg-dev libzstd-dev)
test_packages=(libgtest-dev libgmock-dev python3-jsonschema pkg-config)
# Launchers and network namespaces, with which tests start ranks on several hosts; .ci/run installs them.
cluster_packages=(slurmctld slurmd slurm-client munge openmpi-bin mpich iproute2 procps)
# Packages of PyPI with which tests read what the program writes; .ci/run installs them.
python_test_packages=(tensorboard onnx onnxruntime wandb mlflow-skinny perfetto viztracer)

# ThreadSanitizer of gcc 12 cannot place its shadow where the kernel randomises addresses by more than 28 bits.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$script")" "$*" >&2
  exit 1
}

# Prints the comment at the head of the script, which is its manual.
usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$script" | grep -v '^SPDX'; }

# A path as the caller meant it.
from_here() { (cd "$started_in" && realpath -m "$1"); }

# need_packages NAME...: installs those that are missing, by apt; says so, asks nothing. Elsewhere names them and goes on.
need_packages() {
  local missing=() name
  command -v dpkg-query >/dev/null || { not_debian "$@"; return; }
  for name in "$@"; do
    [[ $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null) == *' installed' ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "needs ${missing[*]}: install them as root, or install sudo"
    as_root=(sudo)
  fi
  say "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# need_cudnn: where neither the loader nor /usr/local/cuda has cuDNN, NVIDIA's wheels of the version that is recorded, and of
# cuBLASLt, in build/nvidia. As VIRTUAL_ENV, that folder is where CMake and the program look. Without network it goes on.
need_cudnn() {
  local name=libcudnn.so.9 nvcc=${CUDACXX-} major version
  [[ $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null) != *"$name"* ]] || return 0
  ! compgen -G "/usr/local/cuda/lib*/$name" >/dev/null || return 0
  [[ -n $nvcc ]] || nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  version=$(sed -n '1s/^cuDNN //p' tests/nn/backend/cuda/cudnn_record.txt)
  say "Installing cuDNN $version for CUDA $major in build/nvidia"
  if python3 -m venv build/nvidia &&
    build/nvidia/bin/pip install -q "nvidia-cudnn-cu$major==$version.*"; then
    export VIRTUAL_ENV=$PWD/build/nvidia
  else
    say "No cuDNN: tests that need it are skipped"
    return 1
  fi
}

# need_chromium: the browser in which tests open reports. They are skipped without it.
need_chromium() {
  command -v chromium >/dev/null || need_packages chromium && command -v chromium >/dev/null
}

# need_python_packages REQUIREMENT...: pip's packages in build/python, a virtual environment, and GRADRING_TEST_PYTHON as its
# Python, in which tests look for them. Installs what is missing; without network, or where a package has no wheel for this
# Python, it says so, installs the others, and returns 1.
need_python_packages() {
  local pip=(build/python/bin/python3 -m pip --disable-pip-version-check install -q --only-binary :all:) missing=() name
  if [[ ! -x ${pip[0]} ]]; then
    say "Creating build/python"
    python3 -c 'import ensurepip' 2>/dev/null || (need_packages python3-venv) || true
    python3 -m venv build/python || { say "No virtual environment: tests that need $* are skipped"; return 1; }
  fi
  export GRADRING_TEST_PYTHON=$PWD/build/python/bin/python3
  # All at once, so that their dependencies fit together; quick and without network once they are there.
  "${pip[@]}" "$@" && return
  for name in "$@"; do "${pip[@]}" "$name" || missing+=("$name"); done
  ((${#missing[@]})) || return 0
  say "Not installed: ${missing[*]}; tests that need them are skipped"
  return 1
}

not_debian() { say "No dpkg here. On Debian 12 this would install: $*"; }

# A GPU's driver, not a toolkit: without one the CUDA module would be built for nothing.
has_gpu_driver() {
  [[ -e /proc/driver/nvidia/version || $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null) == *libcuda.so.1* ]]
}

# The value of a variable in build/PRESET's cache, empty where there is none.
cached() { sed -n "s/^$2:[A-Z]*=//p" "build/$1/CMakeCache.txt" 2>/dev/null || true; }

# What the presets' GRADRING_CUDA becomes in the scripts that a user runs: what the environment says, or else ON if build/release
# has it, or else what is of use.
cuda_choice() {
  if [[ -n ${GRADRING_CUDA-} ]]; then
    echo "$GRADRING_CUDA"
  elif [[ $(cached release GRADRING_CUDA) == ON ]]; then
    echo ON
  elif has_gpu_driver; then
    echo AUTO
  else
    echo OFF
  fi
}

# configure PRESET [OPTION...]: once; a later call does nothing unless an option is not yet what it asks for.
# CMake's own rule re-runs it when a CMakeLists.txt changes.
configure() {
  local preset=$1 option settled=1
  shift
  [[ -f build/$preset/build.ninja ]] || settled=0
  for option in "$@"; do
    option=${option#-D}
    [[ $(cached "$preset" "${option%%=*}") == "${option#*=}" ]] || settled=0
  done
  ((settled)) && return
  say "Configuring build/$preset"
  cmake --preset "$preset" "$@"
}

# suite_names: of the targets that `ninja -t targets all` prints, the test suites: test_comm is the binary of suite comm.
suite_names() { sed -n 's/^test_\([a-z0-9_]*\): phony$/\1/p' | sort; }

# seconds since the script began, as 3m07s
elapsed() { printf '%dm%02ds' $((SECONDS / 60)) $((SECONDS % 60)); }

# run_tests PRESET [CTEST-OPTION...]: ctest with its closing summary, and a line "57 passed, 0 failed, 3 skipped". Three tests at a
# time on the two cores of CI, because many wait for processes that they started.
run_tests() {
  local preset=$1 log=build/$1/ctest.log status=0 python=build/python/bin/python3
  shift
  [[ -n ${GRADRING_TEST_PYTHON-} || ! -x $python ]] || export GRADRING_TEST_PYTHON=$PWD/$python
  ctest --preset "$preset" -j3 --no-tests=error "$@" 2>&1 | tee "$log" || status=$?
  count_tests "$log"
  return "$status"
}

# count_tests LOG: the line for what ctest printed.
count_tests() {
  local total failed skipped
  total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$1" | tail -n 1)
  failed=$(sed -n 's/.* \([0-9]*\) tests failed out of.*/\1/p' "$1" | tail -n 1)
  skipped=$(grep -c '\*\*\*Skipped' "$1" || true)
  [[ -z $total ]] || echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
}
