#include "artel/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace artel::data {
namespace {

// Images of 3 x 8 x 8 bytes that all differ; the label is the sample's number modulo 5.
DatasetPtr images(int64_t count) {
  Tensor inputs({count, 3, 8, 8}, DType::u8);
  Random random{5};
  for (uint8_t& pixel : inputs.values<uint8_t>()) pixel = static_cast<uint8_t>(random.next_u32());
  Tensor labels({count}, DType::i32);
  for (int64_t i = 0; i < count; ++i) labels.values<int32_t>()[i] = static_cast<int32_t>(i % 5);
  return tensor_dataset(inputs, labels);
}

LoaderOptions options(int threads = 1) {
  return {.sampling = {.batch_size = 12, .seed = 9},
          .augmentation = Augmentation::parse({"crop 8 2", "flip", "normalise 0.5 0.25"}),
          .threads = threads};
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

TEST(Loader, MakesBatches) {
  Loader loader(images(50), options());
  const Batch batch = loader.next().value();
  EXPECT_EQ(batch.x.shape(), (Shape{12, 3, 8, 8}));
  EXPECT_EQ(batch.y.shape(), (Shape{12}));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(batch.y.values<int32_t>()[i], batch.samples[i] % 5);
}

TEST(Loader, AReconstructionIsItsOwnTarget) {
  Loader loader(reconstruction(images(50)), {.sampling = {.batch_size = 12, .seed = 9}});
  const Batch batch = loader.next().value();
  EXPECT_EQ(batch.y.shape(), (Shape{12, 3, 8, 8}));
  EXPECT_EQ(values(batch.x), values(batch.y));
  EXPECT_NE(values(batch.x), std::vector<float>(12 * 3 * 8 * 8));
  EXPECT_THROW(reconstruction(tensor_dataset(Tensor({3, 4}, DType::i32), {})), Error);
}

TEST(Loader, GivesTheSameBitsWithAnyNumberOfThreads) {
  const DatasetPtr set = images(50);
  Loader one(set, options(1)), four(set, options(4));
  for (int step = 0; step < 20; ++step) {
    const Batch a = one.next().value(), b = four.next().value();
    ASSERT_EQ(a.samples, b.samples);
    ASSERT_EQ(values(a.x), values(b.x));
    ASSERT_EQ(a.epoch, step / 4);
  }
}

TEST(Loader, PartsOfABatchAddUpToTheWhole) {
  const DatasetPtr set = images(50);
  Loader whole(set, options()), left(set, options()), right(set, options());
  left.serve(0, 5, 12);
  right.serve(5, 12, 12);
  for (int step = 0; step < 6; ++step) {
    const Batch all = whole.next().value();
    EXPECT_EQ(values(all.x.rows(0, 5)), values(left.next().value().x));
    EXPECT_EQ(values(all.x.rows(5, 12)), values(right.next().value().x));
  }
}

// Short batches are cut in the same proportions as whole ones; some parts of them are empty.
TEST(Loader, PartsOfAShortBatchAddUpToo) {
  const DatasetPtr set = images(50);
  LoaderOptions all = options();
  all.sampling.last_batch = LastBatch::keep;
  Loader whole(set, all);
  std::vector<Loader> parts;
  for (int64_t i = 0; i < 5; ++i) parts.emplace_back(set, all).serve(i, i + 1, 5);
  for (int step = 0; step < 10; ++step) {
    const Batch expected = whole.next().value();
    EXPECT_EQ(expected.total, step % 5 == 4 ? 2 : 12);
    for (int64_t i = 0; i < 5; ++i) {
      const Batch part = parts[i].next().value();
      EXPECT_EQ(part.total, expected.total);
      EXPECT_EQ(values(part.x),
                values(expected.x.rows(expected.total * i / 5, expected.total * (i + 1) / 5)));
    }
  }
}

TEST(Loader, AnyBatchCanBeComputedDirectly) {
  Loader loader(images(50), options());
  loader.next();
  const LoaderState state = loader.state();
  const Batch streamed = loader.next().value();
  const Batch direct = loader.batch(state, 3, 7);
  EXPECT_EQ(values(direct.x), values(streamed.x.rows(3, 7)));
}

TEST(Loader, ResumesAtTheExactSample) {
  const DatasetPtr set = images(50);
  Loader first(set, options());
  for (int step = 0; step < 6; ++step) first.next();
  Loader second(set, options(3));
  second.seek(first.state());
  for (int step = 0; step < 6; ++step) {
    const Batch a = first.next().value(), b = second.next().value();
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.position, b.position);
    EXPECT_EQ(values(a.x), values(b.x));
  }
}

TEST(Loader, VisitsEverySampleOfAnEpochOnceAndEnds) {
  LoaderOptions all = options(2);
  all.sampling.last_batch = LastBatch::keep;
  all.epochs = 2;
  Loader loader(images(50), all);
  std::vector<int64_t> seen;
  std::vector<int64_t> sizes;
  while (const auto batch = loader.next()) {
    seen.insert(seen.end(), batch->samples.begin(), batch->samples.end());
    sizes.push_back(batch->size());
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{12, 12, 12, 12, 2, 12, 12, 12, 12, 2}));
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i / 2);
  EXPECT_FALSE(loader.next());
}

TEST(Loader, ReadsTokensAndValuesAndNoTargets) {
  const Tensor tokens = Tensor::from<int32_t>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor targets = Tensor::from<float>({4}, {0.5f, 1.5f, 2.5f, 3.5f});
  const LoaderOptions in_order = {.sampling = {.batch_size = 4, .shuffle = false}};
  const Batch batch = Loader(tensor_dataset(tokens, targets), in_order).next().value();
  EXPECT_EQ(batch.x.values<int32_t>()[7], 8);
  EXPECT_EQ(batch.y.values<float>()[3], 3.5f);
  EXPECT_EQ(Loader(tensor_dataset(tokens, Tensor()), in_order).next().value().y.elements(), 0);
}

TEST(Loader, MixesInputsAndTargets) {
  LoaderOptions mixing = options();
  mixing.augmentation = Augmentation::parse({"mixup 0.4"});
  Loader loader(images(50), mixing);
  EXPECT_EQ(loader.layout().target, (Shape{5}));
  const Batch batch = loader.next().value();
  ASSERT_EQ(batch.y.shape(), (Shape{12, 5}));
  int mixed = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const auto weights = batch.y.rows(i, i + 1);
    const auto row = weights.values<float>();
    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0f), 1, 1e-6);
    mixed += *std::max_element(row.begin(), row.end()) < 0.999f;
  }
  EXPECT_GT(mixed, 0);
  EXPECT_EQ(values(loader.batch({0, 0}, 2, 4).x), values(batch.x.rows(2, 4)));
}

// A set with one broken sample.
class Broken : public Dataset {
 public:
  int64_t size() const override { return 8; }
  const SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte>, std::span<std::byte>) const override {
    require(index != 5, ErrorKind::corrupt, "sample 5 is broken");
  }

 private:
  SampleLayout layout_{.input = {1}, .classes = 2};
};

TEST(Loader, ThrowsInPlaceOfTheBrokenBatch) {
  Loader loader(std::make_shared<Broken>(),
                {.sampling = {.batch_size = 2, .shuffle = false}, .threads = 2});
  EXPECT_EQ(loader.next()->position, 0);
  EXPECT_EQ(loader.next()->position, 2);
  EXPECT_THROW(loader.next(), Error);
  EXPECT_EQ(loader.next()->position, 6);
}

TEST(Dataset, SplitsHaveTheirShareOfEachClass) {
  std::vector<double> classes(103);
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = i < 10 ? 2 : i % 3 == 0 ? 1 : 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SplitSamples parts = split_samples(103, 0.2, seed, classes);
    EXPECT_EQ(parts.test.size(), 21u);  // as many as without classes
    std::array<int, 3> counts = {};
    for (const int64_t sample : parts.test) ++counts[static_cast<size_t>(classes[sample])];
    EXPECT_EQ(counts[2], 2) << seed;
    EXPECT_NEAR(counts[1], 0.2 * 31, 1);
    EXPECT_NEAR(counts[0], 0.2 * 62, 1);
  }
}

TEST(Dataset, SplitsByFractionWithoutOverlap) {
  const auto [train, test] = split(images(50), 0.2, 3);
  EXPECT_EQ(train->size(), 40);
  EXPECT_EQ(test->size(), 10);
  EXPECT_THROW(split(images(50), 1.5), Error);
}

std::vector<int32_t> labels_of(const DatasetPtr& set) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < set->size(); ++i) {
    int32_t label = 0;
    set->read_target(i, std::as_writable_bytes(std::span(&label, 1)));
    labels.push_back(label);
  }
  return labels;
}

// 200 samples, of which every 20th is of class 1.
DatasetPtr with_rare_class() {
  Tensor labels({200}, DType::i32);
  for (int32_t i = 0; i < 200; ++i) labels.values<int32_t>()[i] = i % 20 == 0;
  return tensor_dataset(Tensor({200, 2}), labels);
}

TEST(Dataset, FoldsAndDrawnSamplesHaveTheirShareOfEachClass) {
  const DatasetPtr all = with_rare_class();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int64_t fold = 0; fold < 5; ++fold) {
      const auto [train, test] = split_fold(all, 5, fold, seed);
      EXPECT_EQ(train->size(), 160);
      EXPECT_EQ(std::ranges::count(labels_of(test), 1), 2) << seed;
      EXPECT_EQ(std::ranges::count(labels_of(train), 1), 8) << seed;
    }
    const std::vector<int32_t> some = labels_of(drawn(all, 60, seed));
    EXPECT_EQ(some.size(), 60u);
    EXPECT_EQ(std::ranges::count(some, 1), 3) << seed;
  }
}

TEST(Dataset, EachSampleIsInOneFold) {
  Tensor numbers({103});
  for (int64_t i = 0; i < 103; ++i) numbers.values<float>()[i] = static_cast<float>(i);
  std::vector<int> seen(103, 0);
  for (int64_t fold = 0; fold < 10; ++fold) {
    const DatasetPtr test = split_fold(tensor_dataset(Tensor({103, 2}), numbers), 10, fold, 7).test;
    EXPECT_NEAR(test->size(), 10.3, 1);
    for (int64_t i = 0; i < test->size(); ++i) {
      float number = 0;
      test->read_target(i, std::as_writable_bytes(std::span(&number, 1)));
      ++seen[static_cast<size_t>(number)];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(103, 1));
}

TEST(Dataset, DrawsSomeSamplesInTheirOrder) {
  Tensor numbers({50}, DType::i32);
  for (int32_t i = 0; i < 50; ++i) numbers.values<int32_t>()[i] = i;
  const DatasetPtr all = tensor_dataset(Tensor({50, 2}), numbers);
  const std::vector<int32_t> some = labels_of(drawn(all, 20, 3));
  EXPECT_EQ(some.size(), 20);
  EXPECT_TRUE(std::ranges::is_sorted(some, std::less_equal()));  // and none twice
  EXPECT_EQ(some, labels_of(drawn(all, 20, 3)));
  EXPECT_NE(some, labels_of(drawn(all, 20, 4)));
  EXPECT_EQ(drawn(all, 60, 3), all);
}

TEST(Dataset, RefusesRowsThatDoNotMatch) {
  EXPECT_THROW(tensor_dataset(Tensor({4, 2}), Tensor({3}, DType::i32)), Error);
  EXPECT_THROW(tensor_dataset(Tensor({1, 2}), Tensor::from<int32_t>({1}, {-1})), Error);
  EXPECT_THROW(tensor_dataset(Tensor({1, 2}), Tensor::from<int32_t>({1}, {7}), 5), Error);
}

}  // namespace
}  // namespace artel::data
