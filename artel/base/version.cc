#include "artel/base/version.h"

#include "artel/base/error.h"

namespace artel {
namespace {

// "0.2" of "0.2.7".
std::string_view first_two_numbers(std::string_view version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

std::string_view library_version() { return kHeaderVersion; }

void check_headers(std::string_view version) {
  require(
      first_two_numbers(version) == first_two_numbers(kHeaderVersion), ErrorKind::unsupported,
      "[artel] headers: got version {}, expected {} like the library; compile the program again",
      version, kHeaderVersion);
}

}  // namespace artel
