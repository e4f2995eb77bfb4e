#include "artel/comm/failure.h"

#include <gtest/gtest.h>

namespace artel::comm {
namespace {

TEST(Failure, SaysWhoHasFailedAndWhoHasNoticedIt) {
  const Error error = failure_error(
      ErrorKind::cancelled, failure_text("worker 1 on host b", "the disk is full: 3 files", 2));
  EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  EXPECT_STREQ(error.what(),
               "[comm] worker 1 on host b: the disk is full: 3 files (reported by rank 2)");
  ASSERT_NE(error.report(), nullptr);
  EXPECT_EQ(error.report()->worker, "worker 1 on host b");
  EXPECT_EQ(error.cause(), "the disk is full: 3 files");
}

TEST(Failure, MayConcernTheWholeGroup) {
  const Error error = failure_error(ErrorKind::timeout, failure_text("", "[comm] gave up", 0));
  EXPECT_STREQ(error.what(), "[comm] gave up (reported by rank 0)");
  EXPECT_EQ(error.cause(), "[comm] gave up");
}

TEST(Failure, OfATransportItselfHasNoReporter) {
  const Error error = failure_error(ErrorKind::communication, "[comm] rank 1 died");
  EXPECT_STREQ(error.what(), "[comm] rank 1 died");
  EXPECT_EQ(error.report(), nullptr);
  EXPECT_EQ(error.cause(), "[comm] rank 1 died");
}

}  // namespace
}  // namespace artel::comm
