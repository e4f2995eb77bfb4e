#include "artel/base/registry.h"
#include "tests/support/error_of.h"

#include <gtest/gtest.h>

namespace artel {
namespace {

std::string refusal(Registry<int>& registry, const std::string& name) {
  return artel::error_of([&] { registry.add(name, 9); });
}

TEST(Registry, AProgramMayRegisterItsDefinitionAgain) {
  Registry<int> registry("number", {{"one", 1}, {"two", 2}});
  registry.add("three", 3);
  const int* const first = registry.find("three");
  registry.add("three", 33);
  EXPECT_EQ(registry.at("three"), 33);
  EXPECT_EQ(*first, 3) << "whoever uses the earlier definition keeps it";
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(registry.all().size(), 3u);
}

TEST(Registry, WhatComesWithArtelStays) {
  Registry<int> registry("number", {{"one", 1}}, Names::words);
  EXPECT_EQ(refusal(registry, "one"), "number 'one' comes with Artel; try another name");
  EXPECT_EQ(refusal(registry, ""), "number '' has no name");
  EXPECT_EQ(refusal(registry, "a b"),
            "number 'a b': expected a name of letters, digits, '_', '-' and '.'");
  EXPECT_EQ(registry.at("one"), 1);
  EXPECT_EQ(registry.find("two"), nullptr);
}

}  // namespace
}  // namespace artel
