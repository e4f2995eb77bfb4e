# The tests write their own small archives and pictures.
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
target_link_libraries(artel_data_test PRIVATE ZLIB::ZLIB JPEG::JPEG PNG::PNG)
