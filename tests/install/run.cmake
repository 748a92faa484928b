# cmake -DBUILD=<build tree> -DSOURCE=<source root> -DWORK=<scratch> -DCXX=<compiler>
# -DBUILD_TYPE=<type> -DFLAGS=<flags> -DVERSION=<expected> -DWAY=<cmake|pkg-config|deb|module>
# -DPYTHON=<interpreter, or nothing if the Python module is not built> -DPKG_CONFIG=<program or nothing>
# -DCUDA=<whether the CUDA module is built> -P run.cmake
#
# Builds examples/outside against an installed Halftone and runs it, in one of the ways
#   cmake       installed into a scratch prefix that is then moved, found by find_package
#   pkg-config  the same prefix, compiler flags from pkg-config alone
#   deb         unpacked Debian packages, whose fields and contents are checked
# or, for module, a program that asks for CUDA.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(output_of out)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected a match of \"${pattern}\" in:\n${text}")
  endif()
endfunction()

function(run_outside program)
  output_of(text ${program})
  expect("${text}" "^Halftone ${VERSION}\n")
endfunction()

# The installed headers are those that users may include, and no others.
function(expect_public_headers prefix)
  file(STRINGS ${SOURCE}/cmake/public_headers.txt listed REGEX "^[^#]")
  file(GLOB_RECURSE installed RELATIVE ${prefix}/include/halftone ${prefix}/include/halftone/*)
  list(SORT listed)
  list(SORT installed)
  if(NOT "${listed}" STREQUAL "${installed}")
    message(FATAL_ERROR "installed headers: ${installed};\nexpected those of public_headers.txt: ${listed}")
  endif()
endfunction()

# What an installed program says of CUDA: that there is none, or what its device or driver lacks.
function(expect_cuda program installed)
  execute_process(COMMAND ${program} absent --device=cuda RESULT_VARIABLE status
                  OUTPUT_QUIET ERROR_VARIABLE text)
  if(NOT installed)
    expect("${text}" "device cuda:0: CUDA is not installed")
  elseif(text MATCHES "CUDA module|not installed: no lib")
    message(FATAL_ERROR "${program} does not find its module: ${text}")
  endif()
endfunction()

function(build_project project prefix)
  run(${CMAKE_COMMAND} -S ${project} -B ${WORK}/build -G Ninja
      -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${WORK}/build)
endfunction()

function(build_with_cmake prefix)
  build_project(${SOURCE}/examples/outside ${prefix})
  run_outside(${WORK}/build/outside)
endfunction()

function(install_moved prefix)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first ${ARGN})
  file(RENAME ${WORK}/first ${prefix})
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
include(${CMAKE_CURRENT_LIST_DIR}/${WAY}.cmake)
