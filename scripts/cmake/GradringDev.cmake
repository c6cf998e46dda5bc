# SPDX-License-Identifier: Apache-2.0
# The component dev (package gradring-dev): the headers of the C++ API, one static library with all that it needs of this build,
# and the files by which CMake and pkg-config find it. Neither built nor installed by default:
#
#   cmake --build BUILD --target gradring_dev && cmake --install BUILD --component dev --prefix FOLDER

# Adds what `target` links to the global properties GRADRING_DEV_OURS (static libraries) and GRADRING_DEV_OTHERS.
function(gradring_collect_libraries target)
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(libraries ${target} ${property})
    foreach(library IN LISTS libraries)
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.+)>$" "\\1" library "${library}")
      get_property(ours GLOBAL PROPERTY GRADRING_DEV_OURS)
      get_property(others GLOBAL PROPERTY GRADRING_DEV_OTHERS)
      if(NOT TARGET ${library} AND NOT library STREQUAL CMAKE_DL_LIBS OR library IN_LIST ours OR library IN_LIST others)
        continue()
      endif()
      if(NOT library MATCHES "^gradring_")
        set_property(GLOBAL APPEND PROPERTY GRADRING_DEV_OTHERS ${library})
        continue()
      endif()
      get_target_property(type ${library} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        set_property(GLOBAL APPEND PROPERTY GRADRING_DEV_OURS ${library})
      endif()
      gradring_collect_libraries(${library})
    endforeach()
  endforeach()
endfunction()

set_property(GLOBAL PROPERTY GRADRING_DEV_OURS gradring_train_api)
gradring_collect_libraries(gradring_train_api)
get_property(ours GLOBAL PROPERTY GRADRING_DEV_OURS)
get_property(others GLOBAL PROPERTY GRADRING_DEV_OTHERS)

# Of the others that are libraries: their names for the linker, and Debian's packages.
set(names "")
set(GRADRING_DEV_DEPENDS "")
foreach(row fmt::fmt=fmt=libfmt-dev tomlplusplus::tomlplusplus=tomlplusplus=libtomlplusplus-dev ZLIB::ZLIB=z=zlib1g-dev
        OpenSSL::Crypto=crypto=libssl-dev PNG::PNG=png=libpng-dev JPEG::JPEG=jpeg=libjpeg-dev
        DNNL::dnnl=dnnl=libdnnl-dev)
  string(REPLACE = ";" row ${row})
  list(GET row 0 other)
  list(GET row 1 name)
  list(GET row 2 package)
  if(other IN_LIST others)
    get_target_property(type ${other} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)  # headers only
      list(APPEND names ${name})
      list(APPEND GRADRING_DEV_DEPENDS ${package})
    endif()
  endif()
endforeach()
if(OpenMP::OpenMP_CXX IN_LIST others)
  list(APPEND names ${OpenMP_CXX_LIB_NAMES})
endif()
list(APPEND names pthread ${CMAKE_DL_LIBS})
list(REMOVE_DUPLICATES names)
list(JOIN GRADRING_DEV_DEPENDS ", " GRADRING_DEV_DEPENDS)

list(TRANSFORM ours REPLACE "(.+)" "$<FILTER:$<TARGET_OBJECTS:\\1>,EXCLUDE,[.][gp]ch$>" OUTPUT_VARIABLE objects)
foreach(library IN LISTS ours)  # TARGET_OBJECTS leaves these out
  get_property(copies GLOBAL PROPERTY GRADRING_LEVEL_OBJECTS_${library})
  list(APPEND objects ${copies})
  set_source_files_properties(${copies} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endforeach()
add_library(gradring_dev STATIC EXCLUDE_FROM_ALL ${objects})
add_dependencies(gradring_dev ${ours})
set_target_properties(gradring_dev PROPERTIES OUTPUT_NAME gradring EXPORT_NAME gradring LINKER_LANGUAGE CXX)
target_include_directories(gradring_dev INTERFACE $<INSTALL_INTERFACE:include>)
target_compile_features(gradring_dev INTERFACE cxx_std_20)
target_link_libraries(gradring_dev INTERFACE ${names})

cmake_path(GET GRADRING_MODULE_DIR PARENT_PATH GRADRING_LIBRARY_DIR)
set(dev COMPONENT dev EXCLUDE_FROM_ALL)
install(TARGETS gradring_dev EXPORT gradring_dev ARCHIVE DESTINATION ${GRADRING_LIBRARY_DIR} ${dev})
install(DIRECTORY train/app/api/gradring ${PROJECT_BINARY_DIR}/include/gradring DESTINATION include ${dev} FILES_MATCHING PATTERN *.h)
install(EXPORT gradring_dev NAMESPACE gradring:: FILE gradring-config.cmake DESTINATION ${GRADRING_LIBRARY_DIR}/cmake/gradring ${dev})
install(FILES docs/cpp_api.md docs/cpp_api/spirals.cpp DESTINATION share/doc/gradring-dev ${dev})

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradring-config-version.cmake COMPATIBILITY SameMinorVersion)
list(JOIN names " -l" linked)
cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/${GRADRING_LIBRARY_DIR}/pkgconfig OUTPUT_VARIABLE up)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gradring.pc @ONLY CONTENT [[prefix=${pcfiledir}/@up@

Name: gradring
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I${prefix}/include
Libs: -L${prefix}/@GRADRING_LIBRARY_DIR@ -lgradring -l@linked@
]])
install(FILES ${PROJECT_BINARY_DIR}/gradring-config-version.cmake DESTINATION ${GRADRING_LIBRARY_DIR}/cmake/gradring ${dev})
install(FILES ${PROJECT_BINARY_DIR}/gradring.pc DESTINATION ${GRADRING_LIBRARY_DIR}/pkgconfig ${dev})
