# `cpack` in a build folder makes Debian packages, one for each component of HalftoneInstall:
#   libhalftone-dev  what a program is built with. The archives are static, so whoever links them needs
#                    the development packages of their libraries.
#   halftone-tools   programs
#   python3-halftone the Python package, where it is built
#   halftone-mpi     what the two above open for jobs of several processes, where it is built
#   halftone-cuda    what the two above open for CUDA devices, where it is built
set(CPACK_GENERATOR DEB)
# Debian wants a summary for each package; the project has one only.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_NAME halftone)
set(CPACK_PACKAGE_VENDOR "Halftone developers")
set(CPACK_PACKAGE_CONTACT "Halftone developers <halftone@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL development tools)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

# What the archives were compiled against: names of Abseil carry its release, and the next major oneDNN
# has another interface.
math(EXPR next_absl "${absl_VERSION} + 1")
math(EXPR next_dnnl "${dnnl_VERSION_MAJOR} + 1")
string(CONCAT libs "libabsl-dev (>= ${absl_VERSION}), libabsl-dev (<< ${next_absl}), "
                   "libdnnl-dev (>= ${dnnl_VERSION_MAJOR}.${dnnl_VERSION_MINOR}), libdnnl-dev (<< ${next_dnnl}), "
                   "ocl-icd-opencl-dev, libhwy-dev (>= 1.0)")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhalftone-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${libs}, libprotobuf-dev (>= 3.21), zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "halftone-tools, cmake, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "deep learning with static graphs - development files
Describe one training step in C++20, and Halftone compiles it ahead of running
it. Mixed precision is a graph pass that can be read, explained and overruled.
.
Headers, static libraries, and files for CMake and pkg-config.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME halftone-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "deep learning with static graphs - programs
Programs that show, transform and run the graph files of Halftone.")

# The package that owns the shared library of an imported target: its name is another in each release.
function(_halftone_package_of out target)
  foreach(config IN ITEMS "" _NONE _RELEASE _RELWITHDEBINFO)
    get_target_property(file ${target} IMPORTED_LOCATION${config})
    if(file)
      break()
    endif()
  endforeach()
  file(REAL_PATH "${file}" file)
  execute_process(COMMAND dpkg-query --search ${file} OUTPUT_VARIABLE owner COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE ":.*" "" owner "${owner}")
  set(${out} ${owner} PARENT_SCOPE)
endfunction()

set(python_depends "")
if(HALFTONE_HAS_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-halftone)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION
      "deep learning with static graphs - Python module
Build and train graphs of Halftone from Python, with NumPy arrays.")
  math(EXPR python_next "${Python_VERSION_MINOR} + 1")
  string(CONCAT python_depends "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${python_next}), "
                               "python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${python_depends}")
endif()

if(TARGET halftone_cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME halftone-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/libs)
  set(CPACK_COMPONENT_CUDA_DESCRIPTION
      "deep learning with static graphs - CUDA devices
Lets programs that are built with Halftone train on NVIDIA GPUs of compute
capability 8.0 and newer. Needs NVIDIA's driver, CUDA runtime, cuBLAS and cuDNN.")
  # Not libraries of Debian: from NVIDIA's packages, or from an archive that no package knows of.
  set(cuda_version ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
  _halftone_package_of(absl absl::strings)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${absl}, libc6, libgcc-s1, libstdc++6")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS
      "cuda-cudart-${cuda_version}, libcublas-${cuda_version}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
endif()

if(TARGET halftone_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME halftone-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
  set(CPACK_COMPONENT_MPI_DESCRIPTION
      "deep learning with static graphs - jobs of several processes
Lets programs that are built with Halftone train on several machines, started by
mpirun or Slurm.")
endif()

# What binaries link: read from them where dpkg-dev and file are installed (CPack needs both), else the
# packages of the libraries that CMake found.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_EXECUTABLE file)
mark_as_advanced(DPKG_SHLIBDEPS FILE_EXECUTABLE)
if(DPKG_SHLIBDEPS AND FILE_EXECUTABLE)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
else()
  _halftone_package_of(absl absl::strings)
  _halftone_package_of(dnnl DNNL::dnnl)
  _halftone_package_of(hwy hwy::hwy)
  _halftone_package_of(protobuf protobuf::libprotobuf-lite)
  set(libs "${absl}, libc6, ${dnnl}, libgcc-s1, libgomp1, ${hwy}, ${protobuf}, libstdc++6, zlib1g")
  set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${libs}")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${python_depends}, ${libs}")
  if(TARGET halftone_mpi)
    list(GET MPI_CXX_LIBRARIES -1 mpi_library)
    file(REAL_PATH "${mpi_library}" mpi_library)
    execute_process(COMMAND dpkg-query --search ${mpi_library} OUTPUT_VARIABLE mpi_owner ERROR_QUIET)
    string(REGEX REPLACE ":.*" "" mpi_owner "${mpi_owner}")
    set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "libc6, ${mpi_owner}")
  endif()
endif()
include(CPack)
