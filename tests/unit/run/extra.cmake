# The tests write their own small pictures.
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
target_link_libraries(artel_run_test PRIVATE JPEG::JPEG PNG::PNG)
