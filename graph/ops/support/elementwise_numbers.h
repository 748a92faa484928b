// HT_EACH_NUMBER(Do, Numbers): Do(name, default) for each of the numbers of a row of
// elementwise.def, one or two, with nothing between.
#pragma once

#define HT_EACH_NUMBER(Do, Numbers) HT_EACH_NUMBER_IN(Do, HT_NUMBERS_BARE Numbers)
#define HT_NUMBERS_BARE(...) __VA_ARGS__
#define HT_EACH_NUMBER_IN(...) HT_EACH_NUMBER_OF(__VA_ARGS__)
#define HT_EACH_NUMBER_OF(Do, name, value, ...) Do(name, value) __VA_OPT__(Do(__VA_ARGS__))
