# halftone_programs(DIR target...): each DIR/<stem>.cc is the program <build>/DIR/<stem>. The target
# halftone_all_programs builds those of all folders.
add_custom_target(halftone_all_programs)

function(halftone_programs dir)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    add_executable(${stem} ${source})
    set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${dir})
    target_link_libraries(${stem} PRIVATE halftone::halftone ${ARGN})
    add_dependencies(halftone_all_programs ${stem})
  endforeach()
endfunction()
