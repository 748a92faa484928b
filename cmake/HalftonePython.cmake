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
    # NumPy is needed where the module runs, not where it is built.
    find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS NumPy)
    set(PYBIND11_FINDPYTHON ON)
    if(Python_FOUND)
      find_package(pybind11 CONFIG QUIET)
    endif()
    if(NOT Python_FOUND)
      _halftone_python_missing("no Python 3.10 with headers")
    elseif(NOT Python_NumPy_FOUND AND HALFTONE_BUILD_TESTS)
      _halftone_python_missing("no NumPy for the tests")
    elseif(NOT pybind11_FOUND)
      _halftone_python_missing("no pybind11")
    else()
      set(HALFTONE_HAS_PYTHON ON)
      _halftone_python_target()
    endif()
  endif()
endmacro()

# <package>/NAME.pyi: python_stub/halftone/NAME.pyi.in, and behind it what C++ declares, as the program
# python_stub/stubs/NAME.cc writes it.
function(_halftone_python_stub name package)
  set(stubs ${CMAKE_SOURCE_DIR}/python_stub/stubs)
  set(by_hand ${CMAKE_SOURCE_DIR}/python_stub/halftone/${name}.pyi.in)
  set(out ${package}/${name}.pyi)
  add_executable(halftone_${name}_stub ${stubs}/${name}.cc ${stubs}/stub_text.cc)
  target_link_libraries(halftone_${name}_stub PRIVATE halftone_ops)
  if(IS_SYMLINK ${out})  # an older build's, through which the source would be written
    file(REMOVE ${out})
  endif()
  add_custom_command(
    OUTPUT ${out}
    COMMAND halftone_${name}_stub ${by_hand} > ${out}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${out}.new ${out}
    DEPENDS halftone_${name}_stub ${by_hand}
    VERBATIM)
  add_custom_target(halftone_python_${name}_stub ALL DEPENDS ${out})
  add_dependencies(halftone_python halftone_python_${name}_stub)
endfunction()

function(_halftone_python_target)
  set(package ${CMAKE_BINARY_DIR}/python/halftone)
  file(MAKE_DIRECTORY ${package})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python_stub/*.cc)
  pybind11_add_module(halftone_python MODULE NO_EXTRAS ${sources})
  target_link_libraries(halftone_python PRIVATE halftone::halftone)
  halftone_batch(halftone_python)
  target_compile_options(halftone_python PRIVATE -fvisibility=hidden)
  # The run path is where a wheel has what the module loads (python_stub/wheel_builder.py); elsewhere no
  # folder of that name lies. As DT_RPATH, which also holds for what those libraries load themselves. Not as
  # BUILD_RPATH: CMake ends that with a colon, which means the folder that a program is started in.
  set_target_properties(halftone_python PROPERTIES OUTPUT_NAME _halftone
                        LIBRARY_OUTPUT_DIRECTORY ${package}
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/libs")
  target_link_options(halftone_python PRIVATE LINKER:--disable-new-dtags)
  add_custom_target(halftone_wheel DEPENDS halftone_python)
  if(TARGET halftone_cuda)
    add_dependencies(halftone_wheel halftone_cuda)
  endif()
  if(TARGET halftone_mpi)
    add_dependencies(halftone_wheel halftone_mpi)
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python_stub/halftone/*.py
       ${CMAKE_SOURCE_DIR}/python_stub/halftone/*.pyi
       ${CMAKE_SOURCE_DIR}/python_stub/halftone/py.typed)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${package}/${name} SYMBOLIC)
  endforeach()
  foreach(name IN ITEMS nn optim)
    _halftone_python_stub(${name} ${package})
  endforeach()
  set_property(GLOBAL PROPERTY HALFTONE_PYTHON_FILES ${files} ${package}/nn.pyi ${package}/optim.pyi)
endfunction()
