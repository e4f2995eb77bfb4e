#include "artel/base/process.h"

#include <gtest/gtest.h>

#include "artel/base/digest.h"
#include "artel/base/error.h"

namespace artel {
namespace {

TEST(Process, RunsInAFolderAndReportsTheResult) {
  const ProcessResult result =
      run_program({"sh", "-c", "pwd; echo oops >&2; exit 3"}, "/usr", Deadline::after(10));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "/usr\noops\n");
  EXPECT_TRUE(program_exists("sh"));
  EXPECT_FALSE(program_exists("no-such-program"));
  EXPECT_THROW(run_program({"no-such-program"}, "/", Deadline::after(10)), Error);
}

TEST(Process, IsKilledAtTheDeadlineWithItsChildren) {
  const auto start = Clock::now();
  EXPECT_THROW(run_program({"sh", "-c", "sleep 30 & sleep 30"}, "/", Deadline::after(0.3)), Error);
  EXPECT_LT(seconds_between(start, Clock::now()), 5);
}

std::string of(const std::string& text, std::string (*digest)(std::span<const std::byte>)) {
  return digest(std::as_bytes(std::span(text)));
}

// The published vectors of RFC 1321 and FIPS 180-2.
TEST(Digest, MatchesPublishedVectors) {
  EXPECT_EQ(of("", md5), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(of("message digest", md5), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(of("abc", sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(of("abc", sha256), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(of(two_blocks, sha1), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(of(two_blocks, sha256),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1000000, 'a'), sha1), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_THROW(digest_like("abc", {}), Error);
}

}  // namespace
}  // namespace artel
