# halftone_programs(DIR target...): each DIR/<stem>.cc is the program <build>/DIR/<stem>; what several
# share lies in DIR/support/ and becomes halftone_DIR_support. The target halftone_all_programs builds
# the programs of all folders; the property HALFTONE_PROGRAMS_DIR lists those of one.
add_custom_target(halftone_all_programs)

# What all programs begin and end with.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cc)
add_library(halftone_cli STATIC ${cli_sources})
target_link_libraries(halftone_cli PUBLIC halftone_core absl::flags absl::flags_parse absl::flags_reflection
                      absl::flags_usage)

function(halftone_programs dir)
  file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/support/*.cc)
  set(links halftone_nn halftone_cli ${ARGN})
  if(support)
    add_library(halftone_${dir}_support STATIC ${support})
    target_link_libraries(halftone_${dir}_support PUBLIC ${links})
    halftone_batch(halftone_${dir}_support)
    list(PREPEND links halftone_${dir}_support)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    add_executable(${stem} ${source})
    set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${dir})
    target_link_libraries(${stem} PRIVATE ${links})
    add_dependencies(halftone_all_programs ${stem})
    set_property(GLOBAL APPEND PROPERTY HALFTONE_PROGRAMS_${dir} ${stem})
  endforeach()
endfunction()
