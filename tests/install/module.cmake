# A program finds the CUDA module beside the archives that it was linked with. The module here is one of
# another build, which the error names: it has been found, and opened.
install_moved(${WORK}/prefix --component development)
set(module ${WORK}/prefix/lib/libhalftone_cuda.so)
file(WRITE ${WORK}/other_module.cc
"extern \"C\" const void* halftone_cuda_module() {
  static const char* const module[] = {\"halftone 0.0.0\"};
  return module;
}
")
separate_arguments(own UNIX_COMMAND "${FLAGS}")
run(${CXX} -shared -fPIC ${own} ${WORK}/other_module.cc -o ${module})
unset(ENV{LD_LIBRARY_PATH})
unset(ENV{HALFTONE_CUDA_LIBRARY})

function(expect_found program)
  output_of(text ${program})
  expect("${text}" "cannot load the CUDA module: (${module}|libhalftone_cuda.so) is of another build .*: halftone 0\\.0\\.0;")
endfunction()

set(project ${SOURCE}/tests/install/open_cuda)
build_project(${project} ${WORK}/prefix)
expect_found(${WORK}/build/open_cuda)

if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/lib/pkgconfig)
  output_of(flags ${PKG_CONFIG} --cflags --libs halftone)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CXX} -std=c++20 ${own} ${project}/open_cuda.cc -o ${WORK}/open_cuda ${flags})
  expect_found(${WORK}/open_cuda)
endif()

# Without it the same program says so.
file(REMOVE ${module})
output_of(text ${WORK}/build/open_cuda)
expect("${text}" "CUDA is not installed: no libhalftone_cuda.so beside the program, on its run path or ")
