"""The SQL job: one statement over topics and tables of a store, which are views under their names.

A name becomes a view when Spark does not find it: so Spark alone decides which words of a statement are names. Filters
are pushed to the store where every view is read once: Spark keeps one plan of a view for all its reads, whatever their
filters (docs/decisions/0055).

Spark takes `Orders` and `orders` for one name. Where the store has a second name that differs in case alone, names of
the statement are those of the store to the letter, columns included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from storage.errors import InvalidValue
from txnctl.output.shell import line
from txnctl.spark import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txnctl.pipelines.store_views import NamedRelation, StoreViews

_PUSHES: Final = "spark.sql.python.filterPushdown.enabled"
_CASE: Final = "spark.sql.caseSensitive"


def run_statement(spark: SparkSession, statement: str, views: StoreViews) -> DataFrame:
    """Return the rows of a statement; nothing is read before an action.

    Raises:
        TopicNotFound: a name in the statement is neither a topic nor a table.
        InvalidValue: the statement is no query, or a name in it is a topic and a table.
        AnalysisException, ParseException: of Spark.
    """
    spark.conf.set(_PUSHES, "false")
    relations: list[NamedRelation] = []
    case_before = spark.conf.get(_CASE, "false") or "false"
    try:
        _find_views(spark, statement, views, relations)
        if case_before != "true" and views.differ_in_case(relations):
            _drop_views(spark, relations)
            spark.conf.set(_CASE, "true")
            _find_views(spark, statement, views, relations)
        options = views.options(relations)
        _replace_views(spark, options, pushes=True)
        if not _reads_once(spark, spark.sql(statement)):
            _replace_views(spark, options, pushes=False)
            return spark.sql(statement)
        spark.conf.set(_PUSHES, "true")
        return spark.sql(statement)
    finally:
        # The plan of the frame keeps the relations; the next statement has names and a moment of its own.
        _drop_views(spark, relations)
        spark.conf.set(_CASE, case_before)


def _drop_views(spark: SparkSession, relations: list[NamedRelation]) -> None:
    while relations:
        spark.catalog.dropTempView(relations.pop().name)


def result_batches(frame: DataFrame) -> Iterator[list[list[object]]]:
    """Run a query; yield its rows in batches, as columns of Python values: times with their zone, maps as dicts.

    Raises:
        InvalidValue: a type of the result has no Arrow type.
    """
    from pyarrow.types import is_nested

    try:
        result = frame.toArrow()
    except (TypeError, ValueError) as error:
        raise InvalidValue(
            f"the result has a type without a form outside Spark: {error}",
            hint="Cast the column to another type.",
        ) from error
    for batch in result.to_batches():
        yield [
            [_with_maps(value, column.type) for value in column.to_pylist()]
            if is_nested(column.type)
            else column.to_pylist()
            for column in batch.columns
        ]


def _with_maps(value: Any, kind: Any) -> Any:
    """Return a nested value of Arrow in which maps are dicts, and not lists of pairs."""
    from pyarrow import types

    if value is None:
        return None
    if types.is_map(kind):
        return {key: _with_maps(item, kind.item_type) for key, item in value}
    if types.is_struct(kind):
        return {
            part.name: _with_maps(value[part.name], part.type)
            for part in (kind.field(number) for number in range(kind.num_fields))
        }
    if types.is_list(kind) or types.is_large_list(kind):
        return [_with_maps(item, kind.value_type) for item in value]
    return value


def _find_views(
    spark: SparkSession, statement: str, views: StoreViews, relations: list[NamedRelation]
) -> None:
    """Add the topics and tables that a statement names to `relations`, each with an empty stand-in as its view."""
    from pyspark.errors import AnalysisException, ParseException

    while True:
        try:
            # Within another query nothing but a query is allowed, and a query runs nothing before an action.
            _ = spark.sql(f"WITH __statement AS (\n{statement}\n) SELECT * FROM __statement").schema
        except ParseException:
            if getattr(spark, "_jsparkSession", None) is None:
                raise
            _parse(spark, statement)
            raise InvalidValue(
                "the statement is no query, and pipeline sql only reads",
                hint=f"`{line('pipeline run', 'FILE')}` runs a program that may write.",
            ) from None
        except AnalysisException as error:
            name = _missing_name(error)
            if name is None or any(view.name == name for view in relations):
                raise
            view = views.find(name)
            types = schemas.ROW_TYPES if view.topic is None else schemas.MESSAGE_TYPES
            columns = ", ".join(
                f"{column} string"
                if views.moment.as_text and column in ("key", "value")
                else f"{column} {kind}"
                for column, kind in types.items()
            )
            spark.createDataFrame([], columns).createOrReplaceTempView(quoted(name))
            relations.append(view)
        else:
            return


def _parse(spark: SparkSession, statement: str) -> None:
    """Parse a statement and run nothing.

    Raises:
        ParseException
    """
    spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)


def _missing_name(error: Any) -> str | None:
    """Return the name that Spark does not find; None for a name of several parts, and for any further error."""
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    name = (error.getMessageParameters() or {}).get("relationName", "")
    if not (name.startswith("`") and name.endswith("`")) or "`.`" in name:
        return None
    return str(name[1:-1].replace("``", "`"))


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return f"`{name.replace('`', '``')}`"


def _replace_views(spark: SparkSession, options: dict[str, dict[str, str]], *, pushes: bool) -> None:
    for name, of_view in options.items():
        reader = spark.read.format("txnctl").options(**of_view, pushFilters=str(pushes).lower())
        reader.load().createOrReplaceTempView(quoted(name))


def _reads_once(spark: SparkSession, frame: DataFrame) -> bool:
    """Report whether the optimized plan of a frame reads no relation twice, subqueries included.

    Spark Connect does not show the plan: there the answer is no.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return False
    identity = jvm.java.lang.System.identityHashCode
    tables = [identity(table) for table in _tables(frame._jdf.queryExecution().optimizedPlan())]
    return len(tables) == len(set(tables))


def _tables(plan: Any) -> Iterator[Any]:
    """Yield the table of each scan of a plan, as an object of the JVM."""
    kind = plan.getClass().getSimpleName()
    if kind == "DataSourceV2ScanRelation":
        yield plan.relation().table()
    elif kind == "DataSourceV2Relation":
        yield plan.table()
    for below in (plan.children(), plan.innerChildren()):
        for number in range(below.size()):
            yield from _tables(below.apply(number))
