// Machine files: units, errors with their line, and pools of workers.
#include "artel/plan/machines/machines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <numbers>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/plan/forecast/measure_machine.h"
#include "artel/plan/machines/machine_file.h"
#include "artel/plan/machines/units.h"
#include "tests/support/error_of.h"

namespace artel::plan {
namespace {

std::string error_of_file(const std::string& text) {
  return error_of([&] { parse_machines(text, "m.toml"); });
}

std::string machine_text(const std::string& more = "") {
  return "[[machine]]\nname = \"a\"\nflops = \"100 GFLOP/s\"\nmemory = \"8 GiB\"\n"
         "memory_bandwidth = \"20 GB/s\"\n" +
         more;
}

TEST(Units, AreReadAsPeopleWriteThem) {
  EXPECT_DOUBLE_EQ(parse_quantity("64 GiB", Unit::bytes), 64 * 0x1p30);
  EXPECT_DOUBLE_EQ(parse_quantity("80GB", Unit::bytes), 80e9);
  EXPECT_DOUBLE_EQ(parse_quantity("4096", Unit::bytes), 4096);
  EXPECT_DOUBLE_EQ(parse_quantity("1 Gbit", Unit::rate), 125e6);
  EXPECT_DOUBLE_EQ(parse_quantity("1 Gbit/s", Unit::rate), 125e6);
  EXPECT_DOUBLE_EQ(parse_quantity("10GbE", Unit::rate), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_quantity("100 Mbps", Unit::rate), 12.5e6);
  EXPECT_DOUBLE_EQ(parse_quantity("12.5 GB/s", Unit::rate), 12.5e9);
  for (const char* text : {"1 GBit/s", "1 gbit/s", "1 Gb", "1 Gbit/sec", "1GigE", "1 gige",
                           "1 Gb/s", "1 Gb/sec", "1000 mbps", "1 GBIT/S", "0.125 GByte/s"})
    EXPECT_DOUBLE_EQ(parse_quantity(text, Unit::rate), 125e6) << text;
  for (const char* text : {"64G", "64 GB", "64 gb", "64 GByte", "64 gbytes", "64 Gbyte", "64g"})
    EXPECT_DOUBLE_EQ(parse_quantity(text, Unit::bytes), 64e9) << text;
  for (const char* text : {"64Gi", "64 gib", "64 GiByte"})
    EXPECT_DOUBLE_EQ(parse_quantity(text, Unit::bytes), 64 * 0x1p30) << text;
  EXPECT_DOUBLE_EQ(parse_quantity("28 TFLOP/s", Unit::flops), 28e12);
  EXPECT_DOUBLE_EQ(parse_quantity("60 GFLOPS", Unit::flops), 60e9);
  EXPECT_DOUBLE_EQ(parse_quantity("50 us", Unit::seconds), 50e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("10 hours", Unit::seconds), 36000);
  EXPECT_DOUBLE_EQ(parse_quantity("5 %", Unit::fraction), 0.05);
  EXPECT_DOUBLE_EQ(parse_quantity("3.06", Unit::amount), 3.06);
}

TEST(Units, RefuseWhatIsNone) {
  for (const char* text : {"", "GiB", "-1 GiB", "1 Gbit", "nan", "inf", "1e40", "64 Gb", "1 GiB x"})
    EXPECT_THROW(parse_quantity(text, Unit::bytes), Error) << text;
  EXPECT_THROW(parse_quantity("5 ks", Unit::seconds), Error);
  for (const char* text : {"10 G", "10 MBPS", "10 Gi"})
    EXPECT_THROW(parse_quantity(text, Unit::rate), Error) << text;
  EXPECT_EQ(error_of([] { parse_quantity("10 GHz", Unit::rate); }),
            "got \"10 GHz\", expected a rate such as \"1 Gbit/s\", \"10GbE\" or \"12.5 GB/s\"");
}

TEST(Units, LongTimesAreReadable) {
  EXPECT_EQ(format_long_time(0.0042), "4.2 ms");
  EXPECT_EQ(format_long_time(12 * 86400.0), "12 days");
  EXPECT_EQ(format_long_time(355.4 * 365.25 * 86400), "355 years");
}

TEST(Machines, FilesSayWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of_file("[[machine]]\nflops = \"fast\"\n"),
            "[m.toml:2] flops: got \"fast\", expected a speed such as \"60 GFLOP/s\"");
  EXPECT_EQ(error_of_file(machine_text("network = \"0 Gbit/s\"\n")),
            "[m.toml:6] network: got 0, expected more than 0");
  EXPECT_EQ(error_of_file(machine_text("flopps = 1\n")),
            "[m.toml:6] unknown key 'flopps'; did you mean 'flops'?");
  EXPECT_EQ(error_of_file(machine_text("count = 0\n")),
            "[m.toml:6] count: got 0, expected 1 to 1,000,000");
  EXPECT_EQ(error_of_file("about = \"x\"\n"),
            "[m.toml] no machines: expected at least one [[machine]]");
  EXPECT_EQ(error_of_file("[[machine]]\nname = \"a\"\n"),
            "[m.toml:1] flops: missing; expected more than 0");
  EXPECT_EQ(error_of_file("[[machine]]\nname = \"a\"\nflops = 0\n"),
            "[m.toml:3] flops: got 0, expected more than 0");
  EXPECT_TRUE(
      error_of_file(machine_text("[machine.op.produkt]\nflops = \"1 GFLOP/s\"\n"))
          .starts_with(
              "[m.toml:6] unknown class of ops 'produkt'; did you mean 'product'?; known: "));
  EXPECT_EQ(error_of_file(machine_text("[machine.op.product]\nbandwidth = 0\n")),
            "[m.toml:7] bandwidth: got 0, expected more than 0; leave the key out if this takes no "
            "time");
  EXPECT_TRUE(error_of_file("[[machine]]\nflops = \n").starts_with("[m.toml:2] invalid TOML"));
}

TEST(Machines, SwitchesFormATree) {
  const std::string racks =
      "[[switch]]\nname = \"one\"\nuplink = \"two\"\n[[switch]]\nname = \"two\"\n";
  EXPECT_EQ(error_of_file(machine_text("switch = \"ome\"\n") + racks),
            "[m.toml:6] switch: no switch 'ome'; did you mean 'one'?");
  EXPECT_EQ(error_of_file(machine_text() + racks),
            "[m.toml:1] switch: missing; expected the switch of machine 'a', because there are 2");
  EXPECT_EQ(error_of_file(machine_text("switch = \"one\"\n") + racks + "uplink = \"one\"\n"),
            "[m.toml:9] uplink: switches one, two form a cycle; expected a tree");
  EXPECT_EQ(
      error_of_file(machine_text("switch = \"one\"\n") + racks + "[[switch]]\nname = \"three\"\n"),
      "[m.toml:12] uplink: no link between the switches 'two' and 'three'; expected one tree");
}

TEST(Machines, PoolsAreAsSlowAsTheirSlowestMachine) {
  const Machines machines = parse_machines(
      machine_text("switch = \"one\"\ncount = 2\ndevices = 2\nprice = 1\n") +
          "[[machine]]\nname = \"b\"\nflops = \"50 GFLOP/s\"\nmemory = \"16 GiB\"\nprice = 3\n"
          "memory_bandwidth = \"20 GB/s\"\nswitch = \"two\"\n"
          "[[switch]]\nname = \"one\"\nuplink = \"two\"\nbandwidth = \"100 Mbit/s\"\n"
          "[[switch]]\nname = \"two\"\n",
      "m.toml");
  EXPECT_EQ(machines.workers(), 5);
  const Pool two = pool_of(machines, 2);
  EXPECT_EQ(two.machines, 1);
  EXPECT_DOUBLE_EQ(two.kind.flops, 100e9);
  EXPECT_DOUBLE_EQ(two.between.bandwidth, 125e6);
  const Pool five = pool_of(machines, 5);
  EXPECT_EQ(five.machines, 3);
  EXPECT_DOUBLE_EQ(five.kind.flops, 50e9);
  EXPECT_DOUBLE_EQ(five.kind.memory, 8 * 0x1p30);
  EXPECT_DOUBLE_EQ(five.between.bandwidth, 12.5e6);  // over the uplink of the first switch
  EXPECT_DOUBLE_EQ(five.price, 5);
  EXPECT_TRUE(five.exists);
  EXPECT_FALSE(pool_of(machines, 6).exists);
}

TEST(Machines, EmulatedMachinesShareTheirCores) {
  const Machines machines = parse_machines(machine_text("count = 4\nshared_cores = true\n"), "m");
  EXPECT_DOUBLE_EQ(pool_of(machines, 1).kind.flops, 100e9);
  EXPECT_DOUBLE_EQ(pool_of(machines, 4).kind.flops, 25e9);
}

TEST(Machines, WrittenFilesAreReadAgain) {
  for (const std::string& name : known_machines()) {
    const Machines machines = machines_by_name(name);
    const std::string text = to_toml(machines);
    EXPECT_EQ(to_toml(parse_machines(text, name)), text);
    EXPECT_FALSE(machines.about.empty()) << name;
  }
  EXPECT_THROW(machines_by_name("v1000"), Error);
}

TEST(Machines, LatenciesOfZeroAreWritten) {
  const std::string links = "latency = 0\ninside_latency = \"0 us\"\n";
  const Machines read =
      parse_machines(to_toml(parse_machines(machine_text(links), "m.toml")), "m.toml");
  EXPECT_EQ(read.kinds[0].network.latency, 0);
  EXPECT_EQ(read.kinds[0].inside.latency, 0);
}

// Known values: 1 / sqrt(pi) for two, 1.5 / sqrt(pi) for three; tables of order statistics.
TEST(Machines, TheSlowestOfSeveralIsExpected) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(2), 1 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_largest(3), 1.5 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_largest(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_largest(100), 2.50759, 1e-5);
  EXPECT_NEAR(expected_largest(1000), 3.24144, 1e-5);
}

// Virtual pairs and bridges are not cards.
TEST(Machines, OnlyNetworkCardsHaveASpeed) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("net{}", getpid());
  const auto add = [&](const char* name, const char* speed, bool device) {
    std::filesystem::create_directories(folder / name / (device ? "device" : "queues"));
    write_file_atomically(folder / name / "speed", speed);
  };
  add("veth1", "10000\n", false);
  EXPECT_EQ(network_speed(folder), 0);
  add("eth0", "1000\n", true);
  add("eth1", "-1\n", true);
  EXPECT_EQ(network_speed(folder), 125e6);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace artel::plan
