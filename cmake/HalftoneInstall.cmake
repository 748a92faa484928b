# `cmake --install`, in components:
#   development  archives, headers below include/halftone, and two packages that name what the
#                archives link: find_package(halftone) gives halftone::halftone, `pkg-config --cflags
#                --libs halftone` the same for other build systems. Both can be moved with their prefix.
#   tools        the programs of tools/
#   python       the Python package, where it is built
#   mpi          the module that programs open for jobs of several processes, where it is built
#   cuda         the module that programs open for CUDA devices, where it is built. Programs have the
#                folder where it lies, beside the archives, in their run path.
# Includes are spelled as in the tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halftone)
get_property(layers GLOBAL PROPERTY HALFTONE_LAYERS)
target_link_options(halftone_all INTERFACE
  "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>")
install(TARGETS ${layers} halftone_all EXPORT halftone_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT halftone_targets NAMESPACE halftone:: DESTINATION ${package_dir}
        FILE halftoneTargets.cmake COMPONENT development)
set(header_list ${CMAKE_SOURCE_DIR}/cmake/public_headers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header_list})
file(STRINGS ${header_list} public_headers REGEX "^[^#]")
foreach(header IN LISTS public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halftone/${folder}
          COMPONENT development)
endforeach()

get_property(tools GLOBAL PROPERTY HALFTONE_PROGRAMS_tools)
install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

if(HALFTONE_HAS_PYTHON)
  # Debian's interpreter looks there below /usr; elsewhere PYTHONPATH says so.
  set(python_dir lib/python3/dist-packages/halftone)
  get_property(python_files GLOBAL PROPERTY HALFTONE_PYTHON_FILES)
  install(TARGETS halftone_python LIBRARY DESTINATION ${python_dir} COMPONENT python)
  install(FILES ${python_files} DESTINATION ${python_dir} COMPONENT python)
  install(FILES python_stub/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-halftone
          COMPONENT python)
endif()

if(TARGET halftone_mpi)
  install(TARGETS halftone_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
if(TARGET halftone_cuda)
  install(TARGETS halftone_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
endif()

# Documents of each component, in the folder of its Debian package.
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE*)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhalftone-dev
        COMPONENT development)
install(FILES ${documents} tools/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/halftone-tools
        COMPONENT tools)
if(TARGET halftone_mpi)
  install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/halftone-mpi COMPONENT mpi)
endif()
if(TARGET halftone_cuda)
  install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/halftone-cuda COMPONENT cuda)
endif()

# CMake package.
set(openmp_dependency "")
if(HALFTONE_OPENMP)
  set(openmp_dependency "find_dependency(OpenMP COMPONENTS CXX)")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/halftoneConfig.cmake @ONLY CONTENT
"include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
find_dependency(absl)
find_dependency(Protobuf)
find_dependency(hwy CONFIG)
find_dependency(dnnl CONFIG)
@openmp_dependency@
include(\${CMAKE_CURRENT_LIST_DIR}/halftoneTargets.cmake)
")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/halftoneConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/halftoneConfig.cmake
              ${CMAKE_BINARY_DIR}/halftoneConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# pkg-config file. The archives refer to each other in circles, hence the group. oneDNN has no .pc
# file in Debian. ParallelFor is a template that reads _OPENMP: callers must agree with the archives.
set(archives "")
foreach(layer IN LISTS layers)
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND archives " -l${layer}")
  endif()
endforeach()
set(openmp_flag "")
if(HALFTONE_OPENMP)
  set(openmp_flag " ${OpenMP_CXX_FLAGS}")
endif()
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/halftone.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@to_prefix@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: halftone
Description: @PROJECT_DESCRIPTION@ (C++20, static)
Version: @PROJECT_VERSION@
Requires: absl_inlined_vector absl_span absl_status absl_statusor absl_strings libhwy protobuf-lite zlib
Cflags: -I\${includedir} -pthread@openmp_flag@
Libs: -L\${libdir} -Wl,-rpath,\${libdir} -Wl,--start-group@archives@ -Wl,--end-group -ldnnl -pthread@openmp_flag@
")
install(FILES ${CMAKE_BINARY_DIR}/halftone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
