#include "artel/data/fetch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "artel/base/digest.h"
#include "artel/base/file.h"
#include "artel/base/tar.h"
#include "artel/data/sets.h"
#include "tests/support/gzip.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

std::string tar_entry(const std::string& name, const std::string& content, char kind = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", content.size()));
  header[156] = kind;
  header.replace(257, 5, "ustar");
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

std::string digest_of(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

// A separate data folder, and programs called curl and npm that copy from another folder.
class Fetch : public testing::Test {
 protected:
  Fetch() {
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "server");
    ::setenv("ARTEL_DATA", (folder_ / "data").c_str(), 1);
    path_ = ::getenv("PATH");
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
    // The last two arguments are the file and the URL. What is there already is kept: a resume.
    program("curl",
            "for last; do :; done; while [ \"$1\" != --output ]; do shift; done\n"
            "from=\"" +
                (folder_ / "server").string() +
                "/$(basename \"$last\")\"\n"
                "[ -e \"$from\" ] || { echo 'curl: (22) not found'; exit 22; }\n"
                "have=$(stat -c %s \"$2\" 2>/dev/null || echo 0)\n"
                "[ $have -le $(stat -c %s \"$from\") ] || { echo 'curl: (22) 416'; exit 22; }\n"
                "echo $have >> \"" +
                (folder_ / "log").string() +
                "\"\n"
                "tail -c +$((have + 1)) \"$from\" >> \"$2\"\n");
    program("npm", "[ \"$2\" = --silent ] && cp " + (folder_ / "server").string() +
                       "/$(echo $3 | sed 's/^@//' | tr @/ --).tgz .\n");
  }
  ~Fetch() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("ARTEL_DATA");
  }

  void program(const std::string& name, const std::string& script) {
    write_file_atomically(folder_ / "bin" / name, "#!/bin/sh\n" + script);
    fs::permissions(folder_ / "bin" / name, fs::perms::owner_all);
  }

  void serve(const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / "server" / name, content);
  }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(Fetch, TakesTheFirstSourceThatWorks) {
  const std::string archive = gzip(tar_entry("package/data/a", "content") +
                                   tar_entry("package/other", "x") + std::string(1024, '\0'));
  serve("pack-1.0.0.tgz", archive);
  const CatalogueEntry entry{
      "set",
      "",
      {{"a"}},
      {{SourceKind::folder, "/nonexistent", {}},
       {SourceKind::server, "https://one/", {{"a", digest_of("content"), {}}}},
       {SourceKind::npm, "", {{"pack@1.0.0", digest_of(archive), {{"package/data/a", "a"}}}}}}};
  EXPECT_FALSE(find_set(entry));
  const fs::path path = get_set(entry);
  EXPECT_EQ(path, folder_ / "data/set");
  EXPECT_EQ(read_file(path / "a"), "content");
  EXPECT_FALSE(fs::exists(path / "other"));
  EXPECT_EQ(find_set(entry), path);
}

TEST_F(Fetch, KnowsWhatNpmCallsThePackagesOfAnOrganisation) {
  serve("maker-texts-1.0.0.tgz", "content");
  const CatalogueEntry entry{
      "set",
      "",
      {{"maker-texts-1.0.0.tgz"}},
      {{SourceKind::npm, "", {{"@maker/texts@1.0.0", digest_of("content"), {}}}}}};
  EXPECT_EQ(read_file(get_set(entry) / "maker-texts-1.0.0.tgz"), "content");
}

TEST_F(Fetch, ContinuesAnInterruptedDownload) {
  serve("a", "content");
  fs::create_directories(folder_ / "data/downloads/set");
  write_file_atomically(folder_ / "data/downloads/set/a", "cont");
  const CatalogueEntry entry{
      "set",
      "",
      {{"a"}},
      {{SourceKind::server, "https://one/", {{"a", digest_of("content"), {}}}}}};
  EXPECT_EQ(read_file(get_set(entry) / "a"), "content");
  EXPECT_EQ(read_file(folder_ / "log"), "4\n");
}

TEST_F(Fetch, BeginsAnewWhereNothingCanBeContinued) {
  serve("a.bin", "all of it");
  const fs::path downloads = folder_ / "data" / "downloads" / "set";
  fs::create_directories(downloads);
  write_file_atomically(downloads / "a.bin", "longer than all of it, of another version");
  const CatalogueEntry entry{
      "set",
      "",
      {{"a.bin"}},
      {{SourceKind::server, "https://example.org/", {{"a.bin", digest_of("all of it"), {}}}}}};
  EXPECT_EQ(read_file(get_set(entry) / "a.bin"), "all of it");
}

TEST_F(Fetch, TwoAtOnceDoNotMeet) {
  serve("a", "content");
  const CatalogueEntry entry{
      "set",
      "",
      {{"a"}},
      {{SourceKind::server, "https://one/", {{"a", digest_of("content"), {}}}}}};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_EQ(read_file(get_set(entry) / "a"), "content"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_file(folder_ / "log"), "0\n");  // fetched once
}

TEST_F(Fetch, RefusesAWrongDigestAndListsEveryReason) {
  serve("a", "something else");
  const CatalogueEntry entry{
      "set",
      "",
      {{"a"}},
      {{SourceKind::server, "https://one/", {{"missing", digest_of("content"), {}}}},
       {SourceKind::server, "https://two/", {{"a", digest_of("content"), {}}}}}};
  try {
    get_set(entry);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[https://one/missing] curl: (22) not found"), std::string::npos) << text;
    EXPECT_NE(text.find("[a] wrong digest"), std::string::npos) << text;
  }
  EXPECT_FALSE(find_set(entry));
  EXPECT_FALSE(fs::exists(folder_ / "data/downloads/set/a"));
}

TEST_F(Fetch, UsesAFolderThatAPackageInstalled) {
  const CatalogueEntry entry{
      "set", "", {{"a"}}, {{SourceKind::folder, (folder_ / "server").string(), {}}}};
  EXPECT_THROW(get_set(entry), Error);
  serve("a", "content");
  EXPECT_EQ(get_set(entry), folder_ / "server");
}

TEST_F(Fetch, TellsHowToGetASet) {
  try {
    open_set("mnist");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("artel data get mnist"), std::string::npos);
  }
}

TEST(Catalogue, IsConsistent) {
  const std::vector<std::string> openable = set_names();
  for (const CatalogueEntry& entry : catalogue()) {
    const bool is_model = entry.name == "minilm";
    EXPECT_EQ(std::find(openable.begin(), openable.end(), entry.name) == openable.end(), is_model)
        << entry.name;
    for (const Source& source : entry.sources) {
      if (source.kind == SourceKind::folder) continue;
      if (source.kind == SourceKind::server) {
        EXPECT_TRUE(source.address.starts_with("https://"));
      }
      std::set<std::string> names;
      for (const RemoteFile& file : source.files) {
        EXPECT_EQ(file.digest.size(), digest_of("").size()) << file.from;
        if (file.members.empty())
          names.insert(source.kind == SourceKind::npm ? packed_name(file.from) : file.from);
        for (const Member& member : file.members) names.insert(member.name);
      }
      const bool enough = std::any_of(
          entry.complete.begin(), entry.complete.end(),
          [&](const auto& group) { return std::set(group.begin(), group.end()) == names; });
      EXPECT_TRUE(enough) << entry.name << " " << source.address;
    }
  }
  EXPECT_THROW(find_entry("minst"), Error);
}

TEST(Tar, RefusesWhatLeadsOut) {
  const auto parse = [](const std::string& archive) { return parse_tar(make_bytes(archive, "x")); };
  EXPECT_EQ(parse(tar_entry("a/b", "hello")).at(0).content.text(), "hello");
  EXPECT_TRUE(parse(tar_entry("a", "", '5')).empty());
  EXPECT_EQ(parse(tar_entry("long", "a/very/long/name", 'L') + tar_entry("a/very", "x")).at(0).name,
            "a/very/long/name");
  for (const char* name : {"/etc/passwd", "../x", "a/../../x"})
    EXPECT_THROW(parse(tar_entry(name, "x")), Error) << name;
  EXPECT_THROW(parse(tar_entry("a", "", '2')), Error);
  EXPECT_THROW(parse(tar_entry("a", std::string(600, 'x')).substr(0, 900)), Error);
}

}  // namespace
}  // namespace artel::data
