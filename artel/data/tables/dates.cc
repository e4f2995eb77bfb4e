#include "artel/data/tables/dates.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace artel::data {
namespace {

using Order = DateFormat::Order;

constexpr std::array<std::string_view, 3> kOrderNames = {"year-month-day", "day-month-year",
                                                         "month-day-year"};
constexpr double kSecondsOfDay = 86400;

// Reads up to `most` digits from the front of a text. Empty if there is none.
std::optional<int> take_number(std::string_view& text, size_t most) {
  size_t digits = 0;
  int value = 0;
  while (digits < std::min(most, text.size()) && text[digits] >= '0' && text[digits] <= '9')
    value = 10 * value + (text[digits++] - '0');
  if (digits == 0) return {};
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

// Two digits mean 1970 to 2069.
int full_year(int year, size_t digits) {
  if (digits > 2) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

struct DateParts {
  std::array<int, 3> numbers = {};
  std::array<size_t, 3> digits = {};
  char separator = 0;
};

std::optional<DateParts> take_date(std::string_view& text) {
  DateParts parts;
  for (size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      if (text.empty() || std::string_view("-./").find(text[0]) == std::string_view::npos ||
          (i == 2 && text[0] != parts.separator))
        return {};
      parts.separator = text[0];
      text.remove_prefix(1);
    }
    const size_t before = text.size();
    const std::optional<int> number = take_number(text, 4);
    if (!number) return {};
    parts.numbers[i] = *number;
    parts.digits[i] = before - text.size();
  }
  return parts;
}

// Seconds since midnight of "", " 7:30", "T07:30:15.5", with an optional time zone.
std::optional<double> take_time(std::string_view text) {
  if (text.empty()) return 0;
  if (!take(text, ' ') && !take(text, 'T')) return {};
  const std::optional<int> hours = take_number(text, 2);
  if (!hours || !take(text, ':')) return {};
  const std::optional<int> minutes = take_number(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return {};
  double seconds = 0;
  if (take(text, ':')) {
    const std::optional<int> whole = take_number(text, 2);
    if (!whole || *whole > 60) return {};
    seconds = *whole;
    if (take(text, '.')) {
      double place = 0.1;
      for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), place /= 10)
        seconds += place * (text[0] - '0');
    }
  }
  const bool zone =
      text.empty() || text == "Z" || text == " UTC" || text[0] == '+' || text[0] == '-';
  if (!zone) return {};
  return 3600 * *hours + 60 * *minutes + seconds;
}

}  // namespace

std::string_view to_string(Order order) { return kOrderNames[static_cast<size_t>(order)]; }

std::optional<Order> date_order(std::string_view name) {
  const auto found = std::ranges::find(kOrderNames, name);
  if (found == kOrderNames.end()) return {};
  return static_cast<Order>(found - kOrderNames.begin());
}

std::optional<double> parse_date(std::string_view text, const DateFormat& format) {
  const std::optional<DateParts> parts = take_date(text);
  if (!parts) return {};
  const bool year_first = format.order == Order::year_month_day;
  const size_t year = year_first ? 0 : 2;
  const size_t month = format.order == Order::month_day_year ? 0 : 1;
  const size_t day = 3 - year - month;
  if (parts->digits[year] % 2 == 1 || (year_first && parts->digits[year] != 4) ||
      parts->digits[month] > 2 || parts->digits[day] > 2)
    return {};
  const std::chrono::year_month_day date{
      std::chrono::year(full_year(parts->numbers[year], parts->digits[year])),
      std::chrono::month(static_cast<unsigned>(parts->numbers[month])),
      std::chrono::day(static_cast<unsigned>(parts->numbers[day]))};
  const std::optional<double> time = take_time(text);
  if (!date.ok() || !time) return {};
  return kSecondsOfDay * std::chrono::sys_days(date).time_since_epoch().count() + *time;
}

std::optional<DateFormat> date_format_of(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string_view first = texts.front();
  const std::optional<DateParts> parts = take_date(first);
  if (!parts) return {};
  const bool slashes = parts->separator == '/';
  const std::array<Order, 3> orders = {Order::year_month_day,
                                       slashes ? Order::month_day_year : Order::day_month_year,
                                       slashes ? Order::day_month_year : Order::month_day_year};
  for (const Order order : orders) {
    DateFormat format = {.order = order};
    const bool all = std::ranges::all_of(texts, [&](const std::string& text) {
      const std::optional<double> seconds = parse_date(text, format);
      if (seconds && std::fmod(*seconds, kSecondsOfDay) != 0) format.has_time = true;
      return seconds.has_value();
    });
    if (all) return format;
  }
  return {};
}

CalendarTime calendar_time(double seconds) {
  const double days = std::floor(seconds / kSecondsOfDay);
  const std::chrono::sys_days day{std::chrono::days(static_cast<int64_t>(days))};
  const std::chrono::year_month_day date(day);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<int>(static_cast<unsigned>(date.month())),
          .weekday = static_cast<int>(std::chrono::weekday(day).iso_encoding()) - 1,
          .hours = (seconds - kSecondsOfDay * days) / 3600};
}

}  // namespace artel::data
