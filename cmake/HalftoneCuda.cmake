# CUDA, in one of two forms of the same sources, kernels/cuda/*/*.cc and *.cu:
#   real      halftone_cuda_kernels by nvcc and g++, and the module libhalftone_cuda.so that programs
#             open at their first Device::Cuda. AUTO does without where there is no toolkit.
#   EMULATED  as ordinary C++, with the device of tests/cuda_emulation in place of NVIDIA's libraries;
#             linked into every program, and a module for the tests that name it.
#
# NCCL, for steps of several devices: its header here, the library when a program makes such a step.
# Without the header CUDA is built all the same, for one device. HALFTONE_NCCL=OFF does without.
option(HALFTONE_NCCL "Steps of several CUDA devices, by NCCL, where nccl.h is" ON)

# A macro, not a function: enable_language must run at the top scope.
macro(halftone_cuda_layer)
  set(HALFTONE_HAS_CUDA OFF)
  set(HALFTONE_CUDA_EMULATED OFF)
  if(HALFTONE_CUDA STREQUAL "EMULATED")
    find_package(CUDAToolkit REQUIRED)
    set(HALFTONE_CUDA_EMULATED ON)
    _halftone_cuda_kernels()
  elseif(HALFTONE_CUDA STREQUAL "ON" OR HALFTONE_CUDA STREQUAL "AUTO")
    include(CheckLanguage)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND "$ENV{CUDAARCHS}" STREQUAL "")
      # With PTX of 90 also for 100, 103 and 110.
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90 120)
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      find_package(CUDAToolkit REQUIRED)
      # cuDNN has no package file of its own; it lies beside the toolkit or in the system's folders.
      find_library(HALFTONE_CUDNN cudnn HINTS ${CUDAToolkit_LIBRARY_DIR}/../lib
                   ${CUDAToolkit_LIBRARY_DIR})
      find_path(HALFTONE_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    endif()
    if(CMAKE_CUDA_COMPILER AND HALFTONE_CUDNN AND HALFTONE_CUDNN_INCLUDE)
      enable_language(CUDA)
      # CMake 3.25.1 does not know C++20 for nvcc.
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA_STANDARD 20)
      set(HALFTONE_HAS_CUDA ON)
      _halftone_cuda_kernels()
      message(STATUS "Halftone: CUDA for ${CMAKE_CUDA_ARCHITECTURES}")
    elseif(HALFTONE_CUDA STREQUAL "ON")
      message(FATAL_ERROR "HALFTONE_CUDA=ON needs nvcc (CUDACXX) and cuDNN 9: found "
                          "${CMAKE_CUDA_COMPILER}, ${HALFTONE_CUDNN}, ${HALFTONE_CUDNN_INCLUDE}")
    else()
      message(STATUS "Halftone: CUDA not built (no nvcc, or no cuDNN)")
    endif()
  else()
    message(STATUS "Halftone: CUDA not built (HALFTONE_CUDA=${HALFTONE_CUDA})")
  endif()
endmacro()

# NCCL::nccl: the header, and where the library was. NCCL has no package file of its own either.
function(_halftone_find_nccl)
  if(NOT HALFTONE_NCCL OR TARGET NCCL::nccl)
    return()
  endif()
  find_path(HALFTONE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(HALFTONE_NCCL_LIBRARY NAMES nccl libnccl.so.2
               HINTS ${CUDAToolkit_LIBRARY_DIR}/../lib ${CUDAToolkit_LIBRARY_DIR})
  if(NOT HALFTONE_NCCL_INCLUDE)
    message(STATUS "Halftone: CUDA of one device alone (no nccl.h)")
    return()
  endif()
  add_library(NCCL::nccl SHARED IMPORTED GLOBAL)
  target_include_directories(NCCL::nccl SYSTEM INTERFACE ${HALFTONE_NCCL_INCLUDE})
  if(HALFTONE_NCCL_LIBRARY)
    set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${HALFTONE_NCCL_LIBRARY})
  endif()
endfunction()

function(_halftone_cuda_kernels)
  _halftone_find_nccl()
  file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*/*.cu)
  file(GLOB host_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*/*.cc)
  halftone_cuda_kernel_list(kernel_list)
  add_library(halftone_cuda_kernels STATIC ${device_sources} ${host_sources} ${kernel_list})
  target_link_libraries(halftone_cuda_kernels PUBLIC halftone_kernels)
  # The module compiles its entry itself, and then must not find it among others here.
  halftone_batch(halftone_cuda_kernels ${device_sources} ${kernel_list}
                 ${CMAKE_SOURCE_DIR}/kernels/cuda/runtime/module.cc)
  target_include_directories(halftone_cuda_kernels SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  if(TARGET NCCL::nccl)
    target_include_directories(halftone_cuda_kernels SYSTEM PUBLIC ${HALFTONE_NCCL_INCLUDE})
    target_compile_definitions(halftone_cuda_kernels PUBLIC HALFTONE_HAS_NCCL)
  endif()
  if(HALFTONE_CUDA_EMULATED)
    set_source_files_properties(${device_sources} PROPERTIES LANGUAGE CXX)
    target_compile_definitions(halftone_cuda_kernels PUBLIC HALFTONE_CUDA_EMULATED)
    target_compile_options(halftone_cuda_kernels PRIVATE
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-unknown-pragmas>)
    file(GLOB emulation CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda_emulation/*.cc)
    if(NOT TARGET NCCL::nccl)
      list(FILTER emulation EXCLUDE REGEX "/nccl_[a-z_]*\\.cc$")
    endif()
    add_library(halftone_cuda_emulation STATIC ${emulation})
    halftone_batch(halftone_cuda_emulation)
    target_include_directories(halftone_cuda_emulation SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS}
                               $<$<TARGET_EXISTS:NCCL::nccl>:${HALFTONE_NCCL_INCLUDE}>)
    target_compile_definitions(halftone_cuda_emulation PUBLIC HALFTONE_CUDA_EMULATED
      HALFTONE_CUDA_DEVICE_HEADER="halftone/tests/cuda_emulation/device.h")
    if(HALFTONE_SANITIZE MATCHES "thread")
      # Kernels are instrumented; the device that runs them is not part of what is checked.
      target_compile_definitions(halftone_cuda_emulation PRIVATE HT_EMULATION_TSAN)
      target_compile_options(halftone_cuda_emulation PRIVATE -fno-sanitize=thread)
    endif()
    target_link_libraries(halftone_cuda_kernels PUBLIC halftone_cuda_emulation)
  else()
    target_compile_options(halftone_cuda_kernels PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=--warn-on-spills,--warn-on-local-memory-usage>
      # As -ffp-contract=off: an elementwise formula gives the CPU's bits.
      $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
    if(HALFTONE_WERROR)
      target_compile_options(halftone_cuda_kernels PRIVATE
                             $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
    endif()
    target_link_libraries(halftone_cuda_kernels PUBLIC CUDA::cudart CUDA::cublasLt
                          ${HALFTONE_CUDNN})
  endif()
endfunction()

# The module `target` of what is in halftone_cuda_kernels, in `folder`.
function(_halftone_cuda_module target folder)
  add_library(${target} MODULE kernels/cuda/runtime/module.cc)
  # The entry alone: the module's copies of lower layers stay apart from the program's.
  set(symbols ${CMAKE_BINARY_DIR}/halftone_cuda.map)
  file(CONFIGURE OUTPUT ${symbols} CONTENT "{ global: halftone_cuda_module; local: *; };\n")
  target_link_options(${target} PRIVATE LINKER:--version-script=${symbols} LINKER:-z,defs)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${symbols} LIBRARY_OUTPUT_DIRECTORY ${folder})
  target_link_libraries(${target} PRIVATE halftone_cuda_kernels)
endfunction()

# What OpenCuda opens. After the layers' mutual links.
function(halftone_cuda_module)
  if(HALFTONE_CUDA_EMULATED)
    halftone_mutual(kernels cuda_kernels)
    target_link_options(halftone_kernels INTERFACE LINKER:-u,halftone_cuda_module)
    # For the tests of the way that programs take where CUDA is real; they name it.
    _halftone_cuda_module(halftone_emulated_cuda ${CMAKE_BINARY_DIR}/emulated_module)
  elseif(HALFTONE_HAS_CUDA)
    _halftone_cuda_module(halftone_cuda ${CMAKE_BINARY_DIR})
    # Where the toolkit lies outside the loader's folders.
    set_target_properties(halftone_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    if(TARGET NCCL::nccl AND HALFTONE_NCCL_LIBRARY)
      # It is opened, not linked; the run path is where the loader looks for it first.
      get_filename_component(nccl_folder ${HALFTONE_NCCL_LIBRARY} DIRECTORY)
      set_property(TARGET halftone_cuda APPEND PROPERTY BUILD_RPATH ${nccl_folder})
      set_property(TARGET halftone_cuda APPEND PROPERTY INSTALL_RPATH ${nccl_folder})
    endif()
  endif()
endfunction()
