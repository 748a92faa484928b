# The two commands are `make demo` and `make test`; both install what is missing (packages.txt).
JOBS ?= $(shell nproc)
ARGS ?= --amp bf16 --dump build/demo_dump
LINT_BUILD := build/lint

# Set-up comes before configure; JOBS is what runs in parallel.
.NOTPARALLEL:
.PHONY: demo test docs device-bundle setup setup-test setup-lint setup-docs configure lint format \
        format-check clean

demo: configure
	cmake --build build/release -j $(JOBS) --target halftone_demo
	build/release/examples/fashion_mnist $(ARGS)

test: setup-test configure
	cmake --build build/release -j $(JOBS)
	ctest --test-dir build/release --output-on-failure -j $(JOBS)

setup:
	@cmake/setup.sh build

setup-test:
	@cmake/setup.sh build python mpi

setup-lint:
	@cmake/setup.sh build python mpi lint

setup-docs:
	@cmake/setup.sh docs

# The reference of the public headers: build/docs/html/index.html.
docs: setup-docs
	mkdir -p build/docs/include
	ln -sfn $(CURDIR) build/docs/include/halftone
	{ cat docs/Doxyfile; sed -n 's|^[a-z].*\.h$$|INPUT += &|p' cmake/public_headers.txt; } | doxygen -
	@grep -q 'Cross-correlation' build/docs/html/functional_8h.html || { echo "docs: no rows of tables" >&2; exit 1; }

# build/device_bundle: to copy to a machine with a GPU (tests/cuda/README.md).
device-bundle: setup
	cmake --preset device-bundle
	cmake --build --preset device-bundle -j $(JOBS)

configure: setup
	cmake --preset release

# Lint and format need Debian 12: every version of clang-format lays code out in another way.
# LINT_FILES="a.cc b.cc" narrows it, LINT_FILES=--shipped leaves tests out.
lint: setup-lint
	LINT_BUILD=$(LINT_BUILD) JOBS=$(JOBS) cmake/lint.sh $(LINT_FILES)

format: setup-lint
	git ls-files '*.h' '*.cc' '*.cu' '*.cuh' '*.inc' | xargs -r clang-format-14 -i

format-check: setup-lint
	git ls-files '*.h' '*.cc' '*.cu' '*.cuh' '*.inc' | xargs -r clang-format-14 --dry-run -Werror

clean:
	rm -rf build
