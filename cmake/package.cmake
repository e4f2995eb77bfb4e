# `make package`: a Debian package of the program, the library, its headers, the manual page and shell completion.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME artel)
set(CPACK_PACKAGE_CONTACT "Artel developers <artel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains neural networks on many inexpensive machines")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
# What programs that use the library are built with; the group `build` of tools/setup has the same.
string(JOIN ", " CPACK_DEBIAN_PACKAGE_SUGGESTS g++ cmake pkg-config libdnnl-dev libopenblas-dev libhwy-dev libfmt-dev
       libspdlog-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libcpp-httplib-dev libjpeg62-turbo-dev libpng-dev
       libexif-dev zlib1g-dev libssl-dev libopenmpi-dev libgloo-dev libhnswlib-dev)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, openssh-client")
# All but the Python package, which pip installs.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified manual)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)

# tools/manual writes them.
set(manual ${PROJECT_BINARY_DIR}/manual)
install(FILES ${manual}/artel.1.gz DESTINATION share/man/man1 COMPONENT manual OPTIONAL)
install(FILES ${manual}/artel DESTINATION share/bash-completion/completions COMPONENT manual OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/artel RENAME copyright COMPONENT manual)
include(CPack)
