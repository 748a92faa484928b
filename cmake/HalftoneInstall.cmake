# `cmake --install`: archives, headers below include/halftone, and a package, so that
# find_package(halftone) gives halftone::halftone, with the includes spelled as in the tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halftone)
get_property(layers GLOBAL PROPERTY HALFTONE_LAYERS)
install(TARGETS ${layers} halftone_all EXPORT halftone_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT halftone_targets NAMESPACE halftone:: DESTINATION ${package_dir}
        FILE halftoneTargets.cmake)
file(GLOB top_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/*.h)
install(FILES ${top_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halftone)
install(DIRECTORY core graph kernels optim passes
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halftone
        FILES_MATCHING PATTERN "*.h" PATTERN "kernels/cpu" EXCLUDE PATTERN "kernels/cuda" EXCLUDE)

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
        DESTINATION ${package_dir})
