# Notes a layer for installation, where it is halftone::NAME.
function(_halftone_exported name)
  set_property(GLOBAL APPEND PROPERTY HALFTONE_LAYERS halftone_${name})
  set_target_properties(halftone_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

# Compiles the sources of a target in batches: most of a file's time goes into the headers, which a batch
# reads once. Names in anonymous namespaces must then differ within a target. Sources named after the target
# stay alone.
function(halftone_batch target)
  if(HALFTONE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# halftone_layer(NAME DIRS dir... [LINK target...] [PRIVATE_LINK target...] [EXTRA source...] [ALONE source...])
# makes halftone_NAME from DIRS/*.cc (not recursive). A layer without a source is an interface. ALONE stay out
# of the batches.
function(halftone_layer name)
  cmake_parse_arguments(arg "" "" "DIRS;LINK;PRIVATE_LINK;EXTRA;ALONE" ${ARGN})
  set(sources ${arg_EXTRA})
  foreach(dir IN LISTS arg_DIRS)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  if(NOT sources)
    add_library(halftone_${name} INTERFACE)
    target_link_libraries(halftone_${name} INTERFACE ${arg_LINK} ${arg_PRIVATE_LINK})
    _halftone_exported(${name})
    return()
  endif()
  add_library(halftone_${name} STATIC ${sources})
  target_link_libraries(halftone_${name} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  _halftone_exported(${name})
  # simd/x.cc and simd_x.cc include themselves once per SIMD target.
  set(alone ${sources})
  list(FILTER alone INCLUDE REGEX "/simd[_/][^/]*$")
  list(TRANSFORM arg_ALONE PREPEND ${CMAKE_SOURCE_DIR}/)
  halftone_batch(halftone_${name} ${alone} ${arg_EXTRA} ${arg_ALONE})
endfunction()

# Targets whose code takes longer to compile than their tests to run: not optimised.
function(halftone_quick_to_compile)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -O0)
  endforeach()
endfunction()

# `upper` links `lower` already; this adds the way back, through the generated registration list.
function(halftone_mutual lower upper)
  get_target_property(type halftone_${lower} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    target_link_libraries(halftone_${lower} PUBLIC halftone_${upper})
  else()
    target_link_libraries(halftone_${lower} INTERFACE halftone_${upper})
  endif()
endfunction()

# halftone_proto from proto/*.proto: "halftone/proto/graph.pb.h".
function(halftone_proto_layer)
  file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/*.proto)
  if(NOT protos)
    add_library(halftone_proto INTERFACE)
    target_link_libraries(halftone_proto INTERFACE protobuf::libprotobuf-lite)
    _halftone_exported(proto)
    return()
  endif()
  set(generated)
  foreach(proto IN LISTS protos)
    get_filename_component(stem ${proto} NAME_WE)
    set(base ${HALFTONE_GENERATED_DIR}/halftone/proto/${stem}.pb)
    add_custom_command(
      OUTPUT ${base}.cc ${base}.h
      COMMAND protobuf::protoc --cpp_out=${HALFTONE_GENERATED_DIR} -I${HALFTONE_INCLUDE_DIR}
              ${HALFTONE_INCLUDE_DIR}/halftone/proto/${stem}.proto
      DEPENDS ${protos}
      VERBATIM)
    list(APPEND generated ${base}.cc ${base}.h)
  endforeach()
  add_library(halftone_proto STATIC ${generated})
  target_include_directories(halftone_proto SYSTEM
                             PUBLIC $<BUILD_INTERFACE:${HALFTONE_GENERATED_DIR}>)
  _halftone_exported(proto)
  target_link_libraries(halftone_proto PUBLIC protobuf::libprotobuf-lite)
  target_compile_options(halftone_proto PRIVATE -w)
  add_custom_target(halftone_proto_files DEPENDS ${generated})
  add_dependencies(halftone_generated halftone_proto_files)
endfunction()
