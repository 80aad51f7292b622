"""URL patterns of the annotation pages."""

from __future__ import annotations

from django.urls import path

from kbpo.web.desk import expert
from kbpo.web.judging import lessons, own_pages, views
from kbpo.web.marketplace import task, worker_page

urlpatterns = [
    path("", own_pages.show_home, name="annotate"),
    path("next/", views.redirect_to_next_question, name="annotate_next"),
    path("history/", own_pages.show_history, name="annotate_history"),
    path("answers/<int:pk>/", own_pages.show_own_answer, name="annotate_answer"),
    path("messages/", own_pages.show_messages, name="annotate_messages"),
    path("feedback/", own_pages.show_feedback, name="annotate_feedback"),
    path("payee/", own_pages.show_payee, name="annotate_payee"),
    path("receipts/", own_pages.list_receipts, name="annotate_receipts"),
    path("receipts/<str:number>/", own_pages.show_own_receipt, name="annotate_receipt"),
    path("leave/", own_pages.show_leaving, name="annotate_leave"),
    path("gone/", own_pages.show_erased, name="annotate_gone"),
    path("volunteer/", own_pages.volunteer_page, name="annotate_volunteer"),
    path("terms/", lessons.show_terms, name="annotate_terms"),
    path("tutorial/<slug:interface>/", lessons.show_tutorial, name="annotate_tutorial"),
    path(
        "tutorial/<slug:interface>/<int:number>/",
        lessons.show_tutorial_question,
        name="annotate_tutorial_question",
    ),
    path("try/", lessons.redirect_to_first_example, name="try"),
    path("try/<int:number>/", lessons.show_example, name="try_question"),
    path("gold/<slug:slug>/<int:pk>/", expert.make_gold_from_known, name="gold_know"),
    path("gold/<int:pk>/", expert.make_gold_from_answer, name="gold_make"),
    path("preview/<int:pk>/", views.preview_question, name="annotate_preview"),
    path("keys/", views.set_shortcuts, name="annotate_keys"),
    path("expert/<slug:slug>/", expert.redirect_to_next_expert_question, name="expert-next"),
    path("expert/<slug:slug>/<int:pk>/", expert.show_expert_question, name="expert-question"),
    path("expert/<slug:slug>/<int:pk>/draft/", expert.store_expert_draft, name="expert-draft"),
    path(
        "expert/<slug:slug>/<int:pk>/document/", expert.show_expert_document, name="expert-document"
    ),
    path("task/<str:signed>/", task.show_task, name="task"),
    path("learn/<str:signed>/", task.show_lessons, name="task_learn"),
    path("say/<str:signed>/", worker_page.show_worker_page, name="task_say"),
    path("task/<str:signed>/draft/", task.store_draft, name="task_draft"),
    path("task/<str:signed>/document/<int:pk>/", task.show_task_document, name="task_document"),
    path("task/<str:signed>/payment/", task.show_payment, name="task_thanks"),
    path("task/<str:signed>/notify/", task.handle_notification, name="task_notify"),
    path("<str:token>/", views.show_question, name="annotate_question"),
    path("<str:token>/draft/", views.store_draft, name="annotate_draft"),
    path("<str:token>/stop/", views.stop_judging, name="annotate_stop"),
    path("<str:token>/return/", views.return_question, name="annotate_return"),
    path("<str:token>/document/", views.show_document, name="annotate_document"),
]
