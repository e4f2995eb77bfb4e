#include "artel/cluster/host_check.h"

#include <gtest/gtest.h>

#include "artel/cluster/differences.h"

namespace artel {
namespace {

const HostCheckOptions kAsked = {.program = "artel", .folder = "/data", .version = "0.2.0"};

std::string problem(const std::string& output, int code = 0) {
  return report_of("n07", code, output, kAsked).problem;
}

TEST(HostCheck, AHostThatCanBeUsed) {
  const HostReport report = report_of(
      "n07", 0,
      "Welcome!\nartel-check program /usr/bin/artel\n" + describe_program("0.2.0", "avx2", "3f2a"),
      kAsked);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.program, "/usr/bin/artel");
  EXPECT_EQ(report.instructions, "avx2");
  EXPECT_EQ(report.build, "3f2a");
}

TEST(HostCheck, SaysWhatIsWrong) {
  EXPECT_EQ(problem("ssh: Could not resolve hostname n07: Name or service not known\n", 255),
            "its name cannot be resolved");
  EXPECT_EQ(problem("Warning: x\nssh: connect to host n07 port 22: Connection refused\n", 255),
            "ssh: connect to host n07 port 22: Connection refused");
  EXPECT_EQ(problem("artel-check folder\n"), "has no folder /data; try --folder");
  EXPECT_EQ(problem("artel-check lacking\n"), "has no program artel; try --install, or --program");
  EXPECT_EQ(problem("artel-check program /opt/artel\nartel-check version 0.1.0\n"),
            "has version 0.1.0 of /opt/artel, expected 0.2.0; try --install");
  EXPECT_EQ(problem("artel-check program /opt/artel\nartel: error while loading shared libraries: "
                    "libdnnl.so.2\n",
                    127),
            "cannot run /opt/artel: artel: error while loading shared libraries: libdnnl.so.2");
}

TEST(HostCheck, ProcessorsThatDiffer) {
  EXPECT_EQ(different(&HostReport::instructions, {{.host = "a", .instructions = "avx2"},
                                                  {.host = "b", .instructions = "avx2"}}),
            "");
  EXPECT_EQ(different(&HostReport::instructions, {{.host = "a", .instructions = "avx512"},
                                                  {.host = "b", .instructions = "avx2"},
                                                  {.host = "c", .instructions = "avx512"}}),
            "b has avx2, a, c have avx512");
}

TEST(Differences, AreFoundByNameAndNotByLine) {
  const auto found =
      differences("a = 1\nn = x\nn = y\nd = 4\n", "a = 1\nc = 3\nn = x\nn = z\nd = 5\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].own, "");
  EXPECT_EQ(found[0].other, "c = 3");
  EXPECT_EQ(found[1].own, "n = y");
  EXPECT_EQ(found[1].other, "n = z");
  EXPECT_EQ(found[2].other, "d = 5");
  EXPECT_EQ(listed(std::vector<std::string>(10, "x")), "x; x; x; x; x; x; x; x; and 2 more");
}

}  // namespace
}  // namespace artel
