# The two commands to know: `make demo` and `make test`. Everything else is CMake (see CMakePresets.json).
PYTHON = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/artel/python/bin/python

.PHONY: demo test build wheel package setup format check check-sanitizers check-asan check-tsan check-aarch64 clean fuzz fuzz-models
MINUTES ?= 10

build: setup
	tools/build release

demo: setup
	tools/build release artel
	tools/setup demo
	build/release/artel train examples/fashion_mnist.toml -n 2

test: setup
	tools/setup python || echo "Python's packages could not be installed: the Python package is neither built nor tested"
	tools/setup simulation
	tools/build release
	tools/setup test
	tools/setup browser || echo "no browser could be installed: the test of the dashboard's page is skipped"
	tools/test release

# A self-contained wheel of the Python package in build/wheel, tried in a clean virtual environment.
wheel: setup
	tools/setup python
	tools/build release artel_python artel_python_stub
	$(PYTHON) tools/wheel

# A Debian package in build/release/package: program, library, headers, manual page and completion.
package: setup
	tools/build release
	tools/manual build/release/artel build/release/manual
	cd build/release && cpack

# Compares random networks with a plain reference, on all cores; failures are reduced and written to build/failures.
fuzz-models: setup
	tools/build release artel_model_fuzz
	build/release/artel_model_fuzz --seconds $$(($(MINUTES) * 60)) --jobs $$(nproc) --failures build/failures

# libFuzzer with sanitizers on every reader of files and receiver of messages; says executions and coverage.
fuzz: setup
	tools/fuzz $(MINUTES)
	tools/setup python && tools/build release artel_python
	PYTHONPATH=build/release/python $(PYTHON) python/tests/fuzz.py --seconds $$(($(MINUTES) * 6))

setup:
	tools/setup build

format:
	git ls-files '*.h' '*.cc' | xargs clang-format -i

# Formatting, layers, and clang-tidy on the whole library, which clang compiles with warnings as errors. The first time takes
# long; after that only what has changed is looked at again.
check: setup
	tools/setup check
	git ls-files '*.h' '*.cc' | xargs clang-format --dry-run -Werror
	cmake -P tools/check_layers.cmake
	tools/build check

# Every test under the sanitizers; `-k` goes on behind a failure. It takes hours.
check-sanitizers: check-asan check-tsan

check-asan check-tsan: check-%: setup
	tools/setup test check
	tools/build $*
	ctest --preset $* --no-tests=error

# The unit tests of the lower layers and a short training on an emulated ARM processor; half an hour on two cores.
check-aarch64:
	tools/check_aarch64

clean:
	rm -rf build
