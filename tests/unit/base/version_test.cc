#include "artel/base/version.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel {
namespace {

TEST(Version, HeadersFitTheLibraryByTheirFirstTwoNumbers) {
  EXPECT_EQ(library_version(), kHeaderVersion);
  check_headers(kHeaderVersion);
  const std::string two(kHeaderVersion.substr(0, kHeaderVersion.rfind('.')));
  check_headers(two + ".99");
  for (const std::string& other : {"99" + two + ".0", two + "9.0"}) try {
      check_headers(other);
      FAIL() << other;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "[artel] headers: got version " + other + ", expected " +
                                               std::string(kHeaderVersion) +
                                               " like the library; compile the program again");
    }
}

}  // namespace
}  // namespace artel
