#include "artel/base/text.h"

#include <gtest/gtest.h>

#include "artel/base/plural.h"

namespace artel {
namespace {

TEST(Plural, FollowsTheNumber) {
  EXPECT_EQ(counted(1, "epoch"), "1 epoch");
  EXPECT_EQ(counted(0, "epoch"), "0 epochs");
  EXPECT_EQ(counted(2000, "epoch"), "2,000 epochs");
  EXPECT_EQ(counted(3, "class"), "3 classes");
}

TEST(Text, ForPeople) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(16 << 20), "16 MiB");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(123), "123");
  EXPECT_EQ(did_you_mean("epchs", {"epochs", "steps"}), "; did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean("zzzzzzzz", {"epochs"}), "");
  EXPECT_EQ(did_you_mean("mes", {"l1", "mse"}), "; did you mean 'mse'?");
  EXPECT_EQ(did_you_mean("clarity", {"carat", "depth"}), "");
  EXPECT_EQ(did_you_mean("prec", {"recall", "precision"}), "; did you mean 'precision'?");
  EXPECT_EQ(did_you_mean("epchs", {std::string(10'000'000, 'x'), "epochs"}),
            "; did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean(std::string(10'000'000, 'x'), {std::string(10'000'000, 'x')}), "");
  EXPECT_EQ(join(split("a,b,,c", ','), "|"), "a|b||c");
  EXPECT_EQ(trim("  x y\n"), "x y");
}

TEST(Text, WordsOfOtherFrameworksAreKnown) {
  EXPECT_EQ(did_you_mean("acc", {"auc", "accuracy"}), "; did you mean 'accuracy'?");
  EXPECT_EQ(did_you_mean("Linear", {"conv", "dense"}), "; did you mean 'dense'?");
  EXPECT_EQ(did_you_mean("Dense(64)", {"conv", "dense"}), "; did you mean 'dense'?");
  EXPECT_EQ(did_you_mean("BatchNorm2d", {"layer_norm", "batch_norm"}),
            "; did you mean 'batch_norm'?");
  EXPECT_EQ(did_you_mean("learning_rate", {"lr", "momentum"}), "; did you mean 'lr'?");
  EXPECT_EQ(did_you_mean("linear", {"conv"}), "");  // what it means is not there
}

TEST(Text, TerminalsGetNoControlCharacters) {
  EXPECT_EQ(printable("a\tb\n\x1b[31m\x7f"), "a\tb\n\\u001b[31m\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J \xc2\xa0\xc3\xa9"),
            "\\u009b2J \xc2\xa0\xc3\xa9");
  EXPECT_EQ(printable_line("a\tb\r\nc"), "a\\tb\\u000d\\nc");
  EXPECT_EQ(printable("\xc2"), "\xc2");
}

}  // namespace
}  // namespace artel
