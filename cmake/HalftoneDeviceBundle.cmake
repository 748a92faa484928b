# The target device_bundle makes build/device_bundle: the CUDA tests and the benchmarks with the
# libraries that they need, to run on a machine with a GPU and without our packages (tests/cuda/README.md).
option(HALFTONE_DEVICE_BUNDLE "The target device_bundle" OFF)

function(halftone_device_bundle)
  if(NOT HALFTONE_DEVICE_BUNDLE)
    return()
  endif()
  if(NOT HALFTONE_HAS_CUDA)
    message(FATAL_ERROR "HALFTONE_DEVICE_BUNDLE needs HALFTONE_CUDA=ON")
  endif()
  set(programs test_cuda test_cuda_step train_step device_kernels)
  foreach(target IN LISTS programs ITEMS halftone_cuda)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib"
                          INSTALL_RPATH_USE_LINK_PATH OFF)
    # The old tag: the loader then looks there for libraries of libraries too.
    target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  endforeach()
  set(part COMPONENT device_bundle EXCLUDE_FROM_ALL)
  install(TARGETS ${programs} RUNTIME DESTINATION bin ${part})
  install(TARGETS halftone_cuda LIBRARY DESTINATION lib ${part})
  install(PROGRAMS tests/cuda/on_device.sh DESTINATION . ${part})
  install(FILES tests/cuda/on_device_shards.sh tests/cuda/on_device_benchmarks.sh DESTINATION . ${part})
  install(FILES benchmarks/peers/torch_workloads.py DESTINATION peers ${part})
  add_custom_target(device_bundle
    COMMAND ${CMAKE_SOURCE_DIR}/cmake/device_bundle.sh ${CMAKE_BINARY_DIR}
            ${CMAKE_SOURCE_DIR}/build/device_bundle
    DEPENDS ${programs} halftone_cuda
    USES_TERMINAL VERBATIM)
endfunction()
