# The tests write their own small pictures.
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
target_link_libraries(artel_run_test PRIVATE JPEG::JPEG PNG::PNG artel_cli)

# The examples in the comments of public headers are right if they compile.
include(${PROJECT_SOURCE_DIR}/cmake/header_examples.cmake)
artel_write_header_examples(${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/header_examples.cc)
target_sources(artel_run_test PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/header_examples.cc)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/header_examples.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
                            COMPILE_OPTIONS "-Wno-unused-parameter;-Wno-unused-variable;-Wno-unused-but-set-variable;-Wno-unused-function")
