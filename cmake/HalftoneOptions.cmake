# Options and compile flags of every target.
option(HALFTONE_WERROR "Warnings are errors" OFF)
set(HALFTONE_BATCH 32 CACHE STRING "Sources that are compiled together; 1: each alone")
option(HALFTONE_PCH "Precompiled header for tests" ON)
option(HALFTONE_OPENMP "Threads through OpenMP (shared with oneDNN)" ON)
option(HALFTONE_BUILD_TESTS "Build tests/" ON)
set(HALFTONE_TEST_SHARDS "" CACHE STRING
    "Processes in which ctest runs each test program; empty: a process for each test, which costs 0.1 s under sanitizers")
option(HALFTONE_FUZZ "Build tests/fuzz on libFuzzer; clang only" OFF)
set(HALFTONE_CUDA AUTO CACHE STRING "AUTO, ON, OFF or EMULATED")
set_property(CACHE HALFTONE_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)
set(HALFTONE_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_CUDA_FLAGS_SANITIZE "-O1")
set(CMAKE_EXE_LINKER_FLAGS_SANITIZE "")
set(CMAKE_SHARED_LINKER_FLAGS_SANITIZE "")

# Bit-exactness is promised between fused and unfused graphs: no contraction of a * b + c (g++ would
# do it inside functions compiled for AVX2), no -ffast-math, no -march.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# False reports of g++ 12 inside std::string and absl::InlinedVector; the sanitizers look for the real
# ones.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
if(HALFTONE_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(HALFTONE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HALFTONE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${HALFTONE_SANITIZE})
  # g++ loses track of values through sanitizer checks; Abseil's InlinedVector is one false report.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endif()

if(HALFTONE_FUZZ)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# Everything includes "halftone/...": a link to the source root, and the generated headers.
set(HALFTONE_INCLUDE_DIR ${CMAKE_BINARY_DIR}/include)
set(HALFTONE_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${HALFTONE_INCLUDE_DIR} ${HALFTONE_GENERATED_DIR}/halftone/proto)
file(CREATE_LINK ${CMAKE_SOURCE_DIR} ${HALFTONE_INCLUDE_DIR}/halftone SYMBOLIC)
include_directories(${HALFTONE_INCLUDE_DIR})

# Built alone (by lint) it leaves every generated file in place.
add_custom_target(halftone_generated)
