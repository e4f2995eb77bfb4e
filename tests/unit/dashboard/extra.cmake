# The tests are a client of the server, too.
find_package(nlohmann_json REQUIRED)
target_link_libraries(artel_dashboard_test PRIVATE PkgConfig::HTTPLIB nlohmann_json::nlohmann_json)
