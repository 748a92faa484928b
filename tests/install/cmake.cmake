install_moved(${WORK}/prefix)
expect_public_headers(${WORK}/prefix)
build_with_cmake(${WORK}/prefix)
# The program asked for 0.1; a version that promises less than it asks for is refused.
file(MAKE_DIRECTORY ${WORK}/newer)
file(WRITE ${WORK}/newer/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(newer CXX)\nfind_package(halftone 99 REQUIRED)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/newer -B ${WORK}/newer/build
                        -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX}
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE text)
if(status EQUAL 0)
  message(FATAL_ERROR "find_package(halftone 99) was content with ${VERSION}")
endif()
expect("${text}" "version: ${VERSION}")
# Every tool starts from where it was installed.
output_of(text ${WORK}/prefix/bin/halftone_opt --list)
expect("${text}" "insert-amp-casts")
expect_cuda(${WORK}/prefix/bin/halftone_run ${CUDA})
