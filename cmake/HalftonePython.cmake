# The Python module, where Python's headers, pybind11 and NumPy are found: a package that imports from
# <build>/python (PYTHONPATH), the extension beside links to the sources. Not in sanitizer builds: their
# runtime would have to be loaded into the interpreter first.
set(HALFTONE_PYTHON AUTO CACHE STRING "Python module: AUTO, ON or OFF")
set_property(CACHE HALFTONE_PYTHON PROPERTY STRINGS AUTO ON OFF)

function(_halftone_python_missing what)
  if(HALFTONE_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "HALFTONE_PYTHON=ON, but ${what}")
  endif()
  message(STATUS "Halftone: Python module not built (${what})")
endfunction()

# A macro: find_package must set its results where tests/ sees them.
macro(halftone_python_module)
  set(HALFTONE_HAS_PYTHON OFF)
  if(HALFTONE_PYTHON STREQUAL "OFF")
    message(STATUS "Halftone: Python module not built (HALFTONE_PYTHON=OFF)")
  elseif(HALFTONE_SANITIZE)
    _halftone_python_missing("sanitizers are on")
  else()
    # Debian's, not the first of a user's PATH: NumPy and the test tools come from Debian too.
    if(NOT DEFINED Python_EXECUTABLE AND EXISTS /usr/bin/python3)
      set(Python_EXECUTABLE /usr/bin/python3)
    endif()
    find_package(Python 3.10 COMPONENTS Interpreter Development.Module NumPy)
    set(PYBIND11_FINDPYTHON ON)
    if(Python_FOUND)
      find_package(pybind11 CONFIG QUIET)
    endif()
    if(NOT Python_FOUND)
      _halftone_python_missing("no Python 3.10 with headers and NumPy")
    elseif(NOT pybind11_FOUND)
      _halftone_python_missing("no pybind11")
    else()
      set(HALFTONE_HAS_PYTHON ON)
      _halftone_python_target()
    endif()
  endif()
endmacro()

# The stubs of what follows from the rows of elementwise.def: of functions, and of layers.
function(_halftone_elementwise_stubs functions layers)
  set(table ${CMAKE_SOURCE_DIR}/graph/ops/support/elementwise.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(READ ${table} text)
  string(REPLACE ";" "<semicolon>" text "${text}")  # at which a list would be split
  set(name "[A-Za-z_]+")
  set(row "\nHT_(${name})\\((${name}), ${name},[ \n]*(${name})?[^\"]*\"([^\"]*)\"")
  string(REGEX MATCHALL "${row}" rows "${text}")
  foreach(line IN LISTS rows)
    string(REGEX MATCH "${row}" line "${line}")
    set(kind ${CMAKE_MATCH_1})
    set(op ${CMAKE_MATCH_2})
    set(layer ${CMAKE_MATCH_3})
    set(doc "${CMAKE_MATCH_4}")
    if(kind MATCHES "APPROXIMABLE|GRADIENT")
      continue()  # written out, or no function
    elseif(kind MATCHES "BINARY|COMPARE")
      set(parameters "a: _Operand, b: _Operand")
    elseif(kind STREQUAL "LOGICAL")
      set(parameters "a: _Input, b: _Input")
    else()
      set(parameters "x: _Input")
    endif()
    string(APPEND function_stubs "def ${op}(${parameters}) -> Value:\n    \"\"\"${doc}\"\"\"\n\n")
    if(kind STREQUAL "ACTIVATION")
      string(APPEND layer_stubs
             "@final\nclass ${layer}(_Layer):\n    \"\"\"${doc}\"\"\"\n\n    def __init__(self) -> None: ...\n\n")
    endif()
  endforeach()
  string(REPLACE "<semicolon>" ";" function_stubs "${function_stubs}")
  string(REPLACE "<semicolon>" ";" layer_stubs "${layer_stubs}")
  set(${functions} "${function_stubs}" PARENT_SCOPE)
  set(${layers} "${layer_stubs}" PARENT_SCOPE)
endfunction()

function(_halftone_python_target)
  set(package ${CMAKE_BINARY_DIR}/python/halftone)
  file(MAKE_DIRECTORY ${package})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python_stub/*.cc)
  pybind11_add_module(halftone_python MODULE NO_EXTRAS ${sources})
  target_link_libraries(halftone_python PRIVATE halftone::halftone)
  halftone_batch(halftone_python)
  target_compile_options(halftone_python PRIVATE -fvisibility=hidden)
  set_target_properties(halftone_python PROPERTIES OUTPUT_NAME _halftone
                        LIBRARY_OUTPUT_DIRECTORY ${package})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python_stub/halftone/*.py
       ${CMAKE_SOURCE_DIR}/python_stub/halftone/*.pyi
       ${CMAKE_SOURCE_DIR}/python_stub/halftone/py.typed)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${package}/${name} SYMBOLIC)
  endforeach()
  _halftone_elementwise_stubs(HALFTONE_ELEMENTWISE HALFTONE_ACTIVATIONS)
  file(REMOVE ${package}/nn.pyi)  # where it once was a link, the source would be written
  configure_file(${CMAKE_SOURCE_DIR}/python_stub/halftone/nn.pyi.in ${package}/nn.pyi @ONLY)
  # The classes of optimizers in the stub follow from their descriptions.
  add_executable(halftone_optimizer_stubs ${CMAKE_SOURCE_DIR}/python_stub/stubs/optimizers.cc)
  target_link_libraries(halftone_optimizer_stubs PRIVATE halftone_ops)
  set(optim_in ${CMAKE_SOURCE_DIR}/python_stub/halftone/optim.pyi.in)
  if(IS_SYMLINK ${package}/optim.pyi)  # an older build's, through which the source would be written
    file(REMOVE ${package}/optim.pyi)
  endif()
  add_custom_command(
    OUTPUT ${package}/optim.pyi
    COMMAND halftone_optimizer_stubs ${optim_in} > ${package}/optim.pyi.new
    COMMAND ${CMAKE_COMMAND} -E rename ${package}/optim.pyi.new ${package}/optim.pyi
    DEPENDS halftone_optimizer_stubs ${optim_in}
    VERBATIM)
  add_custom_target(halftone_python_stubs ALL DEPENDS ${package}/optim.pyi)
  add_dependencies(halftone_python halftone_python_stubs)
  set_property(GLOBAL PROPERTY HALFTONE_PYTHON_FILES ${files} ${package}/nn.pyi ${package}/optim.pyi)
endfunction()
