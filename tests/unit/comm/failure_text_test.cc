#include "artel/comm/failure.h"

#include <gtest/gtest.h>

#include "artel/comm/rank_name.h"

namespace artel::comm {
namespace {

TEST(Failure, SaysWhoHasFailedAndWhoHasNoticedIt) {
  const Error error =
      failure_error(ErrorKind::cancelled,
                    failure_text("worker 1 on host b", "the disk is full: 3 files", "2 on c"));
  EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  EXPECT_STREQ(error.what(),
               "[comm] worker 1 on host b: the disk is full: 3 files (reported by rank 2 on c)");
  ASSERT_NE(error.report(), nullptr);
  EXPECT_EQ(error.report()->worker, "worker 1 on host b");
  EXPECT_EQ(error.cause(), "the disk is full: 3 files");
}

TEST(Failure, MayConcernTheWholeGroup) {
  const Error error = failure_error(ErrorKind::timeout, failure_text("", "[comm] gave up", "0"));
  EXPECT_STREQ(error.what(), "[comm] gave up (reported by rank 0)");
  EXPECT_EQ(error.cause(), "[comm] gave up");
}

TEST(Failure, ARankIsNamedWithItsHostIfThereAreSeveral) {
  EXPECT_EQ(rank_name({"a", "b", "b"}, 2), "2 on b");
  EXPECT_EQ(rank_name({"a", "a"}, 1), "1");
  EXPECT_EQ(rank_name({}, 3), "3");
}

TEST(Failure, OfATransportItselfHasNoReporter) {
  const Error error = failure_error(ErrorKind::communication, "[comm] rank 1 died");
  EXPECT_STREQ(error.what(), "[comm] rank 1 died");
  EXPECT_EQ(error.report(), nullptr);
  EXPECT_EQ(error.cause(), "[comm] rank 1 died");
}

}  // namespace
}  // namespace artel::comm
