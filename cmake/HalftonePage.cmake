# halftone_page(TARGET NAME FOLDER SHARED) adds a source to TARGET that defines halftone::tools::NAME:
# FOLDER/page.html, in which "@name@" on a line of its own stands for the file FOLDER/name or SHARED/name.
#
# The same file is the script that the build runs when one of them has changed (NAME, FOLDERS, OUTPUT).
if(CMAKE_SCRIPT_MODE_FILE)
  list(GET FOLDERS 0 folder)
  file(READ ${folder}/page.html page)
  foreach(folder IN LISTS FOLDERS)
    file(GLOB parts RELATIVE ${folder} ${folder}/*.css ${folder}/*.js)
    foreach(part IN LISTS parts)
      file(READ ${folder}/${part} text)
      string(FIND "${page}" "\n@${part}@\n" place)
      if(place EQUAL -1)
        message(FATAL_ERROR "page.html has no line @${part}@")
      endif()
      string(REPLACE "\n@${part}@\n" "\n${text}" page "${page}")
    endforeach()
  endforeach()
  if(page MATCHES "\\)page\"")
    message(FATAL_ERROR "the page may not contain the end of its string literal")
  endif()
  file(WRITE ${OUTPUT} "#include \"halftone/tools/support/page_template.h\"

namespace halftone::tools {

const char ${NAME}[] = R\"page(${page})page\";

}  // namespace halftone::tools
")
  return()
endif()

function(halftone_page target name folder shared)
  get_filename_component(stem ${folder} NAME)
  set(output ${HALFTONE_GENERATED_DIR}/${stem}_template.cc)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.css ${folder}/*.js
       ${shared}/*.css ${shared}/*.js)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DFOLDERS=${folder};${shared}" -DOUTPUT=${output}
            -P ${CMAKE_SOURCE_DIR}/cmake/HalftonePage.cmake
    DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/cmake/HalftonePage.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
