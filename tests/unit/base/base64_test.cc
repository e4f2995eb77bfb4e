#include "artel/base/base64.h"

#include <gtest/gtest.h>

namespace artel {
namespace {

// The vectors of RFC 4648, section 10, and bytes above 127.
TEST(Base64, EncodesAnyBytes) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xfb\xff\xfe"), "+//+");
}

}  // namespace
}  // namespace artel
