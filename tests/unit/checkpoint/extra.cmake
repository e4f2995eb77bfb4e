find_package(ZLIB REQUIRED)
target_link_libraries(artel_checkpoint_test PRIVATE ZLIB::ZLIB)
