find_package(ZLIB REQUIRED)
target_link_libraries(artel_data_test PRIVATE ZLIB::ZLIB)
