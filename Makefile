# The two commands to know: `make demo` and `make test`. Everything else is CMake (see CMakePresets.json).
.PHONY: demo test build setup format check clean fuzz-models
MINUTES ?= 10

build: setup
	cmake --preset release
	cmake --build --preset release

demo: build
	tools/setup demo
	build/release/artel train examples/fashion_mnist.toml -n 2

test: build
	tools/setup test
	ctest --preset release --no-tests=error

# Random networks beside a plain reference, on all cores; what is wrong is reduced and written down.
fuzz-models: build
	build/release/artel_model_fuzz --seconds $$(($(MINUTES) * 60)) --jobs $$(nproc) --failures build/failures

setup:
	tools/setup build

format:
	git ls-files '*.h' '*.cc' | xargs clang-format -i

check:
	git ls-files '*.h' '*.cc' | xargs clang-format --dry-run -Werror
	cmake -P tools/check_layers.cmake

clean:
	rm -rf build
