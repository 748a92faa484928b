# The module for MPI, libhalftone_mpi.so: what distributed::Init opens in a process that mpirun or Slurm has
# started. Nothing else includes or links MPI, so programs build and run without it.
set(HALFTONE_MPI AUTO CACHE STRING "Many processes by MPI: AUTO, ON or OFF")
set_property(CACHE HALFTONE_MPI PROPERTY STRINGS AUTO ON OFF)

# A macro: find_package must set its results where tests/ sees them.
macro(halftone_mpi_module)
  set(HALFTONE_HAS_MPI OFF)
  set(HALFTONE_WHY_NO_MPI "")
  if(HALFTONE_MPI STREQUAL "OFF")
    set(HALFTONE_WHY_NO_MPI "HALFTONE_MPI=OFF")
  elseif(HALFTONE_SANITIZE)
    set(HALFTONE_WHY_NO_MPI "sanitizers are on, and MPI is built without")
  else()
    set(MPI_CXX_SKIP_MPICXX ON)  # C's interface
    find_package(MPI 3.0 QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
      set(HALFTONE_HAS_MPI ON)
    else()
      set(HALFTONE_WHY_NO_MPI "no MPI 3 with headers: libopenmpi-dev or libmpich-dev")
    endif()
  endif()
  if(HALFTONE_HAS_MPI)
    add_library(halftone_mpi MODULE distributed/mpi/module.cc)
    set(mpi_symbols ${CMAKE_BINARY_DIR}/halftone_mpi.map)
    file(CONFIGURE OUTPUT ${mpi_symbols} CONTENT "{ global: halftone_transport; local: *; };\n")
    target_link_options(halftone_mpi PRIVATE LINKER:--version-script=${mpi_symbols} LINKER:-z,defs)
    target_link_libraries(halftone_mpi PRIVATE MPI::MPI_CXX)
    set_target_properties(halftone_mpi PROPERTIES LINK_DEPENDS ${mpi_symbols}
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
      # Where MPI lies outside the loader's folders.
      INSTALL_RPATH_USE_LINK_PATH ON)
    message(STATUS "Halftone: MPI ${MPI_CXX_VERSION}")
  elseif(HALFTONE_MPI STREQUAL "ON")
    message(FATAL_ERROR "HALFTONE_MPI=ON, but ${HALFTONE_WHY_NO_MPI}")
  else()
    message(STATUS "Halftone: MPI not built (${HALFTONE_WHY_NO_MPI})")
  endif()
endmacro()
