# Sourced by the commands of this folder: find a Python, keep an environment beside the sources.
#
#   environment EXTRAS     makes or completes .venv with rune from these sources and the named
#                          extras of pyproject.toml; leaves its interpreter in $python
#     libraries [sample]     those written for JAX that the tests try on rune, without jax; after the
#                            environment
#     drivers                as root on Debian or Ubuntu, installs software drivers by apt; elsewhere
#                            says which; after the environment
#
# A second run finds its stamp and does nothing. PYTHON=/path/to/python chooses the interpreter.
# Nothing is fetched but packages: Python's, and by apt python3-venv and drivers.

fail() {
    printf 'rune: %s\n' "$1" >&2
    shift
    for hint in "$@"; do printf 'hint: %s\n' "$hint" >&2; done
    exit 1
}

say() { printf '%s\n' "rune: $1" >&2; }

# Is $1 a Python of at least 3.11?
is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Can $1 make environments? Debian and Ubuntu pack `ensurepip` separately.
can_make() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Print the newest Python for which $1 holds.
newest() {
    holds="$1"
    set -- python3.14 python3.13 python3.12 python3.11 python3 python
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; fi
    for candidate in "$@"; do
        if is_recent "$candidate" && "$holds" "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Add what Debian's Python $1 lacks for making environments.
complete_python() {
    package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing $package"
        export DEBIAN_FRONTEND=noninteractive
        apt-get install -y -q "$package" >/dev/null 2>&1 ||
            { apt-get update -q >/dev/null && apt-get install -y -q "$package" >/dev/null; } ||
            fail "apt-get could not install $package"
    else
        fail "$1 cannot make environments (it has no ensurepip)" \
            "on Debian and Ubuntu: sudo apt install $package   and run this again"
    fi
    can_make "$1" || fail "$1 still cannot make environments, even with $package"
}

find_python() {
    if newest can_make; then return 0; fi
    found="$(newest is_recent)" || fail "found no Python of version 3.11 or newer" \
        "install one: sudo apt install python3 python3-venv; brew install python; python.org" \
        "or name it: PYTHON=/path/to/python3 $0"
    complete_python "$found"
    printf '%s\n' "$found"
}

# Make .venv unless there is a working one.
make_venv() {
    if [ -x "$python" ] && is_recent "$python" && "$python" -c 'import pip' >/dev/null 2>&1; then
        return 0
    fi
    base="$(find_python)"
    say "making .venv with $("$base" -V)"
    "$base" -m venv --clear .venv
}

# Software drivers, so that the tests run every executor without a GPU: Vulkan on the CPU (also under
# WebGPU), the validator of SPIR-V, the validation layer, and what programs in C for OpenCL and Vulkan
# are compiled with. Debian's PoCL joins them where that of the wheel has a compiler too old for the
# processor, and its browser, which looks at pages (Ubuntu's is a snap, and no package).
DRIVERS="libvulkan1 mesa-vulkan-drivers spirv-tools vulkan-validationlayers"
DRIVERS="$DRIVERS libvulkan-dev opencl-headers ocl-icd-opencl-dev"

opencl_works() {
    "$python" -c 'import sys; from rune.backends import opencl; sys.exit(not opencl.probe()[0])'
}

drivers() {
    if ! command -v dpkg >/dev/null 2>&1; then
        say "for the vulkan and wgpu executors, a Vulkan driver and spirv-tools are needed here"
        return 0
    fi
    absent=""
    opencl_works || DRIVERS="$DRIVERS pocl-opencl-icd"
    ! grep -q '^ID=debian' /etc/os-release || DRIVERS="$DRIVERS chromium"
    for package in $DRIVERS; do
        dpkg -s "$package" 2>/dev/null | grep -q "^Status:.* installed" || absent="$absent $package"
    done
    if [ -z "$absent" ]; then return 0; fi
    if [ "$(id -u)" != 0 ]; then
        say "some executors will be absent; for all of them: sudo apt install$absent"
        return 0
    fi
    say "installing$absent"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # a list of words
    apt-get install -y -q $absent >/dev/null 2>&1 ||
        { apt-get update -q >/dev/null && apt-get install -y -q $absent >/dev/null; } ||
        fail "apt-get could not install$absent"
}

install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

# Without what they depend on: jax must not come with them, and what they need is in the list.
libraries() {
    list="$(dirname "$python")/../libraries-${1:-all}.txt"
    stamp="$list.installed"
    "$python" tests/as_jax/libraries/catalogue.py "$@" >"$list"
    if ! cmp -s "$list" "$stamp"; then
        install --no-deps -r "$list" || fail "pip could not install the libraries that are tried"
        cp "$list" "$stamp"
    fi
}

environment() {
    python="$PWD/.venv/bin/python"
    make_venv
    stamp=".venv/installed-$1"
    wanted="$PWD $("$python" -V) $(cksum <pyproject.toml)"
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
        say "installing rune and what it needs here (a minute or two, once)"
        install -e ".[$1]" || fail "pip could not install rune[$1]" "is the network there? pip's message is above"
        printf '%s\n' "$wanted" >"$stamp"
    fi
}
